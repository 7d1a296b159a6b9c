# Timelines: real runs, traced, merged and judged.
lockstep_script_test(trace.merge COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/merge_test.py)
lockstep_script_test(trace.verdicts COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/verdicts_test.py)
