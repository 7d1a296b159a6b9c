lockstep_script_test(sweep.sweep WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/sweep_test.py)
lockstep_script_test(sweep.hosts WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/hosts_test.py)
lockstep_script_test(sweep.quarantine WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/quarantine_test.py)
lockstep_script_test(sweep.board COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/board_test.py)
