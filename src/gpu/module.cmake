# data/*.yaml -> gpu_tables.cc in the build tree; the generator checks every row and fails the build by name of the row.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB gpu_data CONFIGURE_DEPENDS ${dir}/data/*.yaml)
set(gpu_tables ${CMAKE_BINARY_DIR}/generated/gpu/gpu_tables.cc)
add_custom_command(
  OUTPUT ${gpu_tables}
  COMMAND ${Python3_EXECUTABLE} ${dir}/data/generate.py --data ${dir}/data --out ${gpu_tables}
  DEPENDS ${gpu_data} ${dir}/data/generate.py
  COMMENT "Generating the GPU tables"
  VERBATIM)
target_sources(${MODULE} PRIVATE ${gpu_tables})
add_test(NAME gpu_data COMMAND ${Python3_EXECUTABLE} -B ${dir}/data/generate_test.py)
set_tests_properties(gpu_data PROPERTIES LABELS unit)
