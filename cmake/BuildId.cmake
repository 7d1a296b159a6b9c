# The id that says whether a CUDA module or a plugin fits a program: a hash of all headers, since they share C++ types,
# and of what else changes layouts. Written while building, so that it follows every edit of a header.
file(GLOB_RECURSE HEADERS CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
  ${CMAKE_SOURCE_DIR}/include/*.hpp ${CMAKE_SOURCE_DIR}/src/*.hpp)
set(LOCKSTEP_BUILD_ID ${CMAKE_BINARY_DIR}/generated/build_id.cpp)
set(LIST ${CMAKE_BINARY_DIR}/generated/build_id.cmake)
file(CONFIGURE OUTPUT ${LIST} CONTENT "set(SOURCE \"${CMAKE_SOURCE_DIR}\")
set(HEADERS \"${HEADERS}\")
set(SALT \"${PROJECT_VERSION} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${LOCKSTEP_SANITIZE}\")
set(OUTPUT \"${LOCKSTEP_BUILD_ID}\")
")
list(TRANSFORM HEADERS PREPEND ${CMAKE_SOURCE_DIR}/)
add_custom_command(OUTPUT ${LOCKSTEP_BUILD_ID}
  COMMAND ${CMAKE_COMMAND} -D LIST=${LIST} -P ${CMAKE_CURRENT_LIST_DIR}/WriteBuildId.cmake
  DEPENDS ${LIST} ${CMAKE_CURRENT_LIST_DIR}/WriteBuildId.cmake ${HEADERS} COMMENT "Hashing the headers" VERBATIM)
