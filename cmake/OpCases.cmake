# The op driver: every src/ops/<op>/<op>_cases.cpp defines `OpCases lockstep::ops::make_<op>_cases()`. Their list
# is written here. ops_test checks the cases, one ctest entry an op; ops_bench times those marked `benchmark`.
include(${CMAKE_CURRENT_LIST_DIR}/FunctionList.cmake)
lockstep_op_names(CASE_NAMES ${OP_CASES})
lockstep_function_list(_cases "OpCases make_@NAME@_cases()" "list.push_back(make_@NAME@_cases())" ${CASE_NAMES})
set(LOCKSTEP_CASE_LIST ${CMAKE_BINARY_DIR}/generated/case_list.cpp)
file(CONFIGURE OUTPUT ${LOCKSTEP_CASE_LIST} CONTENT
"#include \"ops/op_driver.hpp\"

namespace lockstep::ops {

${DECLARATIONS}
std::vector<OpCases> all_cases() {
  std::vector<OpCases> list;
${CALLS}  return list;
}

}  // namespace lockstep::ops
")

# GPU kernels that are our own: <op>/<op>_grid.hpp, here over HostGrid.
file(GLOB OP_GRIDS CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/ops/*/*_grid.hpp)
set(INCLUDES "")
set(ENTRIES "")
set(GRID_OPS "")
foreach(GRID ${OP_GRIDS})
  if(GRID MATCHES "ops/([a-z0-9_]+)/([a-z0-9_]+)_grid.hpp" AND CMAKE_MATCH_1 STREQUAL CMAKE_MATCH_2)
    string(APPEND INCLUDES "#include \"${GRID}\"\n")
    list(APPEND GRID_OPS ${CMAKE_MATCH_1})
  endif()
endforeach()
list(REMOVE_ITEM GRID_OPS activations)
foreach(OP ${GRID_OPS} ${ACTIVATIONS})
  string(APPEND ENTRIES "      {\"${OP}\", make_${OP}_grid<device::HostGrid>},\n")
endforeach()
set(LOCKSTEP_GRID_LIST ${CMAKE_BINARY_DIR}/generated/grid_list.cpp)
file(CONFIGURE OUTPUT ${LOCKSTEP_GRID_LIST} CONTENT
"${INCLUDES}#include \"ops/op_driver.hpp\"

namespace lockstep::ops {

std::map<std::string, KernelFactory> host_grid_kernels() {
  return {
${ENTRIES}  };
}

}  // namespace lockstep::ops
")

file(GLOB OP_CHECKS CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../tests/ops/*_test.cpp)
add_library(ops_driver STATIC ${OP_CASES} ${LOCKSTEP_CASE_LIST} ${LOCKSTEP_GRID_LIST}
  ops/op_driver.cpp ops/finite_difference.cpp)
target_include_directories(ops_driver PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(ops_driver PUBLIC lockstep_ops fmt::fmt PRIVATE lockstep_flags)
set_target_properties(ops_driver PROPERTIES POSITION_INDEPENDENT_CODE ON)  # tests/cuda puts it into a module

add_executable(ops_test ${OP_CHECKS} allocation_counter.cpp)
target_link_libraries(ops_test PRIVATE ops_driver lockstep_flags GTest::gtest_main)
foreach(OP ${NAMES})
  add_test(NAME ops.${OP} COMMAND ops_test --gtest_filter=*/${OP}__*)
endforeach()
add_test(NAME ops.all COMMAND ops_test --gtest_filter=-*__*)
list(TRANSFORM NAMES PREPEND ops. OUTPUT_VARIABLE OP_TEST_NAMES)
set_tests_properties(ops.all ${OP_TEST_NAMES} PROPERTIES LABELS ops)
lockstep_hot_tests(ops_driver ops_test)

add_executable(ops_bench ops/ops_bench.cpp)
target_link_libraries(ops_bench PRIVATE ops_driver lockstep_flags)
