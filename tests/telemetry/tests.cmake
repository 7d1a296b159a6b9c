# Stand-ins for NVIDIA's library: a recent one, and one of an old driver.
foreach(STAND_IN nvml_stand_in nvml_old_stand_in)
  add_library(${STAND_IN} MODULE ${CMAKE_CURRENT_LIST_DIR}/nvml_stand_in.cpp)
  target_link_libraries(${STAND_IN} PRIVATE lockstep_flags)
endforeach()
target_compile_definitions(nvml_old_stand_in PRIVATE OLD_DRIVER)
target_compile_definitions(telemetry_test PRIVATE NVML_STAND_IN="$<TARGET_FILE:nvml_stand_in>"
  NVML_OLD_STAND_IN="$<TARGET_FILE:nvml_old_stand_in>")
add_dependencies(telemetry_test nvml_stand_in nvml_old_stand_in)

# What is written for TensorBoard is read back with the messages of the room.
target_include_directories(telemetry_test SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/generated/messages)
target_link_libraries(telemetry_test PRIVATE protobuf::libprotobuf-lite)
