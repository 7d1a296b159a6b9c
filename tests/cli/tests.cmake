lockstep_script_test(cli.commands COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/commands_test.py)
lockstep_script_test(cli.starting COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/starting_test.py)
lockstep_script_test(cli.bad COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/bad/run.py $<TARGET_FILE:lockstep> cli data)
