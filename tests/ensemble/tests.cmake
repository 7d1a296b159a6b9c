lockstep_script_test(ensemble.ensemble WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/ensemble_test.py)
