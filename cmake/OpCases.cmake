# The op driver: it has the cases of all ops, and their kernels for GPUs over HostGrid (Lists.cmake). ops_test checks the
# cases, one ctest entry an op; ops_bench times those marked `benchmark`.
file(GLOB OP_CHECKS CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../tests/ops/*_test.cpp)
add_library(ops_driver STATIC ${OP_CASES} ${LOCKSTEP_LISTS}/cases.cpp ${LOCKSTEP_LISTS}/grids.cpp
  ops/op_driver.cpp ops/finite_difference.cpp)
target_include_directories(ops_driver PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(ops_driver PUBLIC lockstep_ops fmt::fmt PRIVATE lockstep_flags)
set_target_properties(ops_driver PROPERTIES POSITION_INDEPENDENT_CODE ON)  # tests/cuda puts it into a module

add_executable(ops_test ${OP_CHECKS} allocation_counter.cpp)
target_link_libraries(ops_test PRIVATE ops_driver lockstep_flags GTest::gtest_main)
add_test(NAME ops.all COMMAND ops_test --gtest_filter=-*__*)
set_tests_properties(ops.all PROPERTIES LABELS ops)
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${LOCKSTEP_LISTS}/op_tests.cmake)
lockstep_hot_tests(ops_driver ops_test)

add_executable(ops_bench ops/ops_bench.cpp)
target_link_libraries(ops_bench PRIVATE ops_driver lockstep_flags)
