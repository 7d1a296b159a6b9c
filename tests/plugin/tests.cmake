# The example's plugin, and libraries that are none. Not with sanitizers: a plugin is compiled as users compile it.
if(LOCKSTEP_SANITIZE)
  return()
endif()
include(${CMAKE_SOURCE_DIR}/cmake/Plugin.cmake)
set(PLUGINS ${CMAKE_BINARY_DIR}/plugins)
set(EXAMPLE ${CMAKE_SOURCE_DIR}/examples/plugin)
lockstep_add_plugin(pendulum ${EXAMPLE}/plugin.cpp ${EXAMPLE}/mish.cpp ${EXAMPLE}/log_cosh.cpp
  ${EXAMPLE}/percent_error.cpp ${EXAMPLE}/libsvm.cpp)
foreach(KIND taken_name taken_reader throws own_optimizer)
  lockstep_add_plugin(plugin_${KIND} ${CMAKE_CURRENT_LIST_DIR}/${KIND}.cpp)
endforeach()
add_library(plugin_other_build MODULE ${CMAKE_CURRENT_LIST_DIR}/other_build.cpp)
set_target_properties(pendulum plugin_taken_name plugin_taken_reader plugin_throws plugin_own_optimizer plugin_other_build
  PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${PLUGINS})
target_link_libraries(pendulum PRIVATE lockstep_flags)

lockstep_script_test(plugin.commands LONG COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/plugin_test.py ${PLUGINS}
  $<TARGET_FILE:stand_in_this_build> ${STAND_INS})
add_executable(plugin_test ${CMAKE_CURRENT_LIST_DIR}/example_ops_test.cpp ops/op_driver.cpp ops/finite_difference.cpp)
target_include_directories(plugin_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(plugin_test PRIVATE lockstep_train lockstep_flags fmt::fmt GTest::gtest_main)
target_compile_definitions(plugin_test PRIVATE PENDULUM="$<TARGET_FILE:pendulum>")
add_dependencies(plugin_test pendulum)
gtest_discover_tests(plugin_test TEST_PREFIX plugin. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS plugin)
