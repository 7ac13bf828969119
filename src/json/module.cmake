target_link_libraries(${MODULE} PRIVATE boost_json yaml-cpp)
