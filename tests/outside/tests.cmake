lockstep_script_test(outside.program LABEL outside COMMAND ${CMAKE_CURRENT_LIST_DIR}/outside_test.sh)
lockstep_script_test(outside.portable LABEL outside COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/portable_test.py)
