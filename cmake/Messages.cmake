# lockstep_messages(ROOM file.proto): protobuf's C++ of a message file becomes part of the room. The compiler's warnings
# about it are not ours to mend.
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
  set_source_files_properties(${OUT}/${NAME}.pb.cc PROPERTIES COMPILE_OPTIONS -w)
  target_sources(lockstep_${ROOM} PRIVATE ${OUT}/${NAME}.pb.cc)
  target_include_directories(lockstep_${ROOM} SYSTEM PRIVATE ${OUT})
endfunction()
