lockstep_script_test(sanitizers.tsan LABEL long TIMEOUT 7200
                     COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/tsan_test.py)
