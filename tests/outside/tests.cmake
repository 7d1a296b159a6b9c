lockstep_script_test(outside.program LABEL outside COMMAND ${CMAKE_CURRENT_LIST_DIR}/outside_test.sh)
