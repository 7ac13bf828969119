target_link_libraries(${MODULE} PRIVATE sqlite3)
