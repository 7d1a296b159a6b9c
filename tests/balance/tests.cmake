lockstep_script_test(balance.report COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/report_test.py)
