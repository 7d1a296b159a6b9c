# The schema against a real validator, with the small catalogue that the bad jobs are written for.
add_executable(config_tool ${CMAKE_CURRENT_LIST_DIR}/config_tool.cpp)
target_include_directories(config_tool PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(config_tool PRIVATE lockstep_config lockstep_flags fmt::fmt)
lockstep_script_test(config.schema_verdicts COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/schema_verdicts.py
  --program $<TARGET_FILE:config_tool> --good ${CMAKE_SOURCE_DIR}/examples --bad ${CMAKE_SOURCE_DIR}/tests/bad/jobs.txt)
target_compile_definitions(config_test PRIVATE BAD_JOBS="${CMAKE_SOURCE_DIR}/tests/bad/jobs.txt"
  EXAMPLES="${CMAKE_SOURCE_DIR}/examples")
# The same with the program's own catalogue.
lockstep_script_test(config.schema_of_program COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/schema_verdicts.py
  --program $<TARGET_FILE:lockstep> --good ${CMAKE_SOURCE_DIR}/examples --bad ${CMAKE_SOURCE_DIR}/tests/bad/cli.txt)
lockstep_script_test(config.bad_jobs_by_program COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/bad_jobs_by_program.py)
lockstep_script_test(config.reference_is_current COMMAND ${CMAKE_CURRENT_LIST_DIR}/reference_is_current.sh)
