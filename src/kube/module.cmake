# data/kubernetes.schema -> schema_data.cc in the build tree: the text as one raw string.
set(schema_text ${dir}/data/kubernetes.schema)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schema_text})
file(READ ${schema_text} schema_content)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/kube/schema_data.cc @ONLY CONTENT
"#include \"kube/schema_data.h\"

const std::string_view tessera::kube::kSchemaText = R\"schema(@schema_content@)schema\";
")
set_source_files_properties(${CMAKE_BINARY_DIR}/generated/kube/schema_data.cc PROPERTIES
                            COMPILE_OPTIONS "-Wno-overlength-strings")
target_sources(${MODULE} PRIVATE ${CMAKE_BINARY_DIR}/generated/kube/schema_data.cc)
