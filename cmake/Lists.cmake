# Lists of ops, their cases and kernels, of models, augmentation steps, optimizers and schedules: adding one touches
# nothing outside its file.
# WriteLists.cmake finds what the sources define and writes the C++ that calls it all; here, and again when one of them
# was edited. Included from src/; LOCKSTEP_LISTS
# is their folder.
set(LOCKSTEP_KERNEL_UNITS 4)  # nvcc reads headers for three seconds before it comes to an op: a unit has several
set(KERNEL_UNITS)
foreach(UNIT RANGE 1 ${LOCKSTEP_KERNEL_UNITS})
  list(APPEND KERNEL_UNITS ${LOCKSTEP_LISTS}/kernels_${UNIT}.cu)
endforeach()
file(GLOB LISTED CONFIGURE_DEPENDS ops/*/*_op.cpp ops/*/*_cases.cpp ops/*/*_grid.hpp ops/*/*_cuda.cu
  ops/activations/activations.hpp graph/models/*.cpp data/augment_steps/*.cpp step/optim/optimizers/*.hpp step/optim/schedules/*.cpp)
set(WRITE_LISTS ${CMAKE_COMMAND} -D SOURCE=${CMAKE_SOURCE_DIR}/src -D LISTS=${LOCKSTEP_LISTS}
  -D KERNEL_UNITS=${LOCKSTEP_KERNEL_UNITS} -D OPS_TEST=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/ops_test
  -P ${CMAKE_CURRENT_LIST_DIR}/WriteLists.cmake)
execute_process(COMMAND ${WRITE_LISTS} COMMAND_ERROR_IS_FATAL ANY)
add_custom_command(COMMAND ${WRITE_LISTS} DEPENDS ${LISTED} ${CMAKE_CURRENT_LIST_DIR}/WriteLists.cmake
  OUTPUT ${LOCKSTEP_LISTS}/ops.cpp ${LOCKSTEP_LISTS}/onnx.cpp ${LOCKSTEP_LISTS}/cases.cpp ${LOCKSTEP_LISTS}/grids.cpp ${LOCKSTEP_LISTS}/cuda.cpp
  ${KERNEL_UNITS} ${LOCKSTEP_LISTS}/op_tests.cmake ${LOCKSTEP_LISTS}/models.cpp ${LOCKSTEP_LISTS}/augmentations.cpp
  ${LOCKSTEP_LISTS}/optim.cpp ${LOCKSTEP_LISTS}/optimizer_list.hpp
  COMMENT "Listing ops, models, augmentation steps, optimizers and schedules" VERBATIM)
target_sources(lockstep_graph PRIVATE ${LOCKSTEP_LISTS}/models.cpp)
target_sources(lockstep_data PRIVATE ${LOCKSTEP_LISTS}/augmentations.cpp)
