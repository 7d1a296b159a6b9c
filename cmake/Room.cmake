# lockstep_room(FOLDER USES folder... LINKS library... [EXCLUDE regex])
# A room, or a folder of one such as step/exec, is a static library of all sources there: lockstep_exec. It sees the
# public headers, its own and those of what it uses; scripts/check_includes.py holds every #include against the same table.
function(lockstep_room ROOM)
  cmake_path(GET ROOM FILENAME NAME)
  cmake_parse_arguments(ROOM "" "EXCLUDE" "USES;LINKS" ${ARGN})
  file(GLOB_RECURSE SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ROOM}/*.cpp)
  list(FILTER SOURCES EXCLUDE REGEX "_cases\\.cpp$")
  if(ROOM_EXCLUDE)
    list(FILTER SOURCES EXCLUDE REGEX "${ROOM_EXCLUDE}")
  endif()
  if(NOT SOURCES)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/empty_${NAME}.cpp CONTENT "")
    set(SOURCES ${CMAKE_BINARY_DIR}/generated/empty_${NAME}.cpp)
  endif()
  add_library(lockstep_${NAME} STATIC ${SOURCES})
  set_target_properties(lockstep_${NAME} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(lockstep_${NAME} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:include>)
  list(TRANSFORM ROOM_USES REPLACE ".*/" "")
  list(TRANSFORM ROOM_USES PREPEND lockstep_)
  target_link_libraries(lockstep_${NAME} PUBLIC ${ROOM_USES} Threads::Threads
    PRIVATE $<BUILD_INTERFACE:lockstep_flags> ${ROOM_LINKS})
endfunction()
