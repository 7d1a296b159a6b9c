# lockstep_messages(ROOM file.proto): protobuf's C++ of a message file becomes part of the room. The compiler's warnings
# about it are not ours to mend. It is compiled by itself, so that `make lint` can have it made without the rooms that
# this one uses.
function(lockstep_messages ROOM FILE)
  get_filename_component(NAME ${FILE} NAME_WE)
  get_filename_component(FOLDER ${CMAKE_CURRENT_SOURCE_DIR}/${FILE} DIRECTORY)
  set(OUT ${CMAKE_BINARY_DIR}/generated/messages)
  file(MAKE_DIRECTORY ${OUT})
  add_custom_command(
    OUTPUT ${OUT}/${NAME}.pb.cc ${OUT}/${NAME}.pb.h
    COMMAND protobuf::protoc --proto_path=${FOLDER} --cpp_out=${OUT} ${NAME}.proto
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${FILE}
    VERBATIM)
  add_library(lockstep_${NAME}_messages OBJECT ${OUT}/${NAME}.pb.cc)
  target_compile_options(lockstep_${NAME}_messages PRIVATE -w)
  set_target_properties(lockstep_${NAME}_messages PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(lockstep_${NAME}_messages SYSTEM PRIVATE ${OUT})
  target_link_libraries(lockstep_${NAME}_messages PRIVATE lockstep_flags protobuf::libprotobuf-lite)
  target_sources(lockstep_${ROOM} PRIVATE $<TARGET_OBJECTS:lockstep_${NAME}_messages>)
  add_dependencies(lockstep_${ROOM} lockstep_${NAME}_messages)
  target_include_directories(lockstep_${ROOM} SYSTEM PRIVATE ${OUT})
endfunction()
