target_link_libraries(${MODULE} PRIVATE sqlite3 re2)
# data/protobuf.fields -> protobuf_fields.cc in the build tree: the text as raw strings.
set(protobuf_text ${dir}/data/protobuf.fields)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${protobuf_text})
file(READ ${protobuf_text} protobuf_content)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/apiserver/protobuf_fields.cc @ONLY CONTENT
"#include \"apiserver/routes_protobuf.h\"

const std::string_view tessera::apiserver::kProtobufFields = R\"fields(@protobuf_content@)fields\";
")
set_source_files_properties(${CMAKE_BINARY_DIR}/generated/apiserver/protobuf_fields.cc PROPERTIES
                            COMPILE_OPTIONS "-Wno-overlength-strings")
target_sources(${MODULE} PRIVATE ${CMAKE_BINARY_DIR}/generated/apiserver/protobuf_fields.cc)
# data/rbac.roles -> rbac_roles.cc in the build tree, in the same way.
set(rbac_roles ${dir}/data/rbac.roles)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${rbac_roles})
file(READ ${rbac_roles} rbac_content)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/apiserver/rbac_roles.cc @ONLY CONTENT
"#include \"apiserver/rbac_defaults.h\"

const std::string_view tessera::apiserver::kDefaultRoles = R\"roles(@rbac_content@)roles\";
")
set_source_files_properties(${CMAKE_BINARY_DIR}/generated/apiserver/rbac_roles.cc PROPERTIES
                            COMPILE_OPTIONS "-Wno-overlength-strings")
target_sources(${MODULE} PRIVATE ${CMAKE_BINARY_DIR}/generated/apiserver/rbac_roles.cc)
# data/time.zones -> time_zones_data.cc, in the same way.
set(time_zones ${dir}/data/time.zones)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${time_zones})
file(READ ${time_zones} time_zones_content)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/apiserver/time_zones_data.cc @ONLY CONTENT
"#include \"apiserver/time_zones.h\"

const std::string_view tessera::apiserver::kTimeZones = R\"zones(@time_zones_content@)zones\";
")
set_source_files_properties(${CMAKE_BINARY_DIR}/generated/apiserver/time_zones_data.cc PROPERTIES
                            COMPILE_OPTIONS "-Wno-overlength-strings")
target_sources(${MODULE} PRIVATE ${CMAKE_BINARY_DIR}/generated/apiserver/time_zones_data.cc)
# data/server.types -> server_types_data.cc, in the same way.
set(server_types ${dir}/data/server.types)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${server_types})
file(READ ${server_types} server_types_content)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/apiserver/server_types_data.cc @ONLY CONTENT
"#include \"apiserver/server_types.h\"

const std::string_view tessera::apiserver::kServerTypes = R\"types(@server_types_content@)types\";
")
set_source_files_properties(${CMAKE_BINARY_DIR}/generated/apiserver/server_types_data.cc PROPERTIES
                            COMPILE_OPTIONS "-Wno-overlength-strings")
target_sources(${MODULE} PRIVATE ${CMAKE_BINARY_DIR}/generated/apiserver/server_types_data.cc)
# config/crd/*.yaml -> definitions_data.cc, one raw string each.
file(GLOB definition_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/config/crd/*.yaml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${definition_files})
set(definition_rows "")
foreach(file IN LISTS definition_files)
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND definition_rows "      {\"${name}\", R\"yaml(${text})yaml\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/apiserver/definitions_data.cc @ONLY CONTENT
"#include \"apiserver/definitions.h\"

const std::vector<tessera::apiserver::Definition>& tessera::apiserver::builtin_definitions() {
  static const std::vector<Definition> all = {
@definition_rows@  };
  return all;
}
")
set_source_files_properties(${CMAKE_BINARY_DIR}/generated/apiserver/definitions_data.cc PROPERTIES
                            COMPILE_OPTIONS "-Wno-overlength-strings")
target_sources(${MODULE} PRIVATE ${CMAKE_BINARY_DIR}/generated/apiserver/definitions_data.cc)
