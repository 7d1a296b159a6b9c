lockstep_script_test(tune.tune COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/tune_test.py)
