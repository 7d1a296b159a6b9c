lockstep_script_test(cli.commands COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/commands_test.py)
lockstep_script_test(cli.weights COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/weights_test.py)
lockstep_script_test(cli.starting COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/starting_test.py)
lockstep_script_test(cli.bench COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/bench_test.py)
lockstep_script_test(cli.scale ALONE COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/scale_test.py)
lockstep_script_test(cli.goodput COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/goodput_test.py)
lockstep_script_test(cli.plan ALONE COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/plan_test.py)
lockstep_script_test(cli.predict COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/predict_test.py)
lockstep_script_test(cli.report COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/report_test.py)
lockstep_script_test(cli.bad COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/bad/run.py $<TARGET_FILE:lockstep> cli data)
# What no command line can test.
add_executable(cli_test ${CMAKE_CURRENT_LIST_DIR}/report_error_test.cpp ${CMAKE_SOURCE_DIR}/src/cli/report_error.cpp
                        ${CMAKE_CURRENT_LIST_DIR}/host_verdicts_test.cpp ${CMAKE_SOURCE_DIR}/src/cli/host_verdicts.cpp
                        ${CMAKE_CURRENT_LIST_DIR}/sampling_test.cpp ${CMAKE_SOURCE_DIR}/src/cli/sampling.cpp
                        ${CMAKE_CURRENT_LIST_DIR}/run_events_test.cpp ${CMAKE_SOURCE_DIR}/src/cli/run_events.cpp
                        ${CMAKE_CURRENT_LIST_DIR}/evaluation_details_test.cpp
                        ${CMAKE_SOURCE_DIR}/src/cli/evaluation_details.cpp ${CMAKE_SOURCE_DIR}/src/cli/details_file.cpp)
target_link_libraries(cli_test PRIVATE lockstep_ensemble lockstep_train lockstep_flags CLI11::CLI11 fmt::fmt GTest::gtest_main)
gtest_discover_tests(cli_test TEST_PREFIX cli. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS cli)
lockstep_script_test(cli.lora COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/lora_test.py)
lockstep_script_test(cli.foreign_job COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/foreign_job_test.py)
lockstep_script_test(cli.streams COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/streams_test.py)
lockstep_script_test(cli.odd_machines COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/odd_machines_test.py)
