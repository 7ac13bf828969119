target_link_libraries(${MODULE} PRIVATE ssl crypto curl)
