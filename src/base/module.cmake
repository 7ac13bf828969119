target_link_libraries(${MODULE} PUBLIC fmt Threads::Threads PRIVATE spdlog z)
target_compile_definitions(${MODULE} PRIVATE SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
