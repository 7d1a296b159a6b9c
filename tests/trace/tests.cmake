# Timelines: real runs, traced, merged and judged. Whether a run is what it was made to be depends on what else runs, so
# the quick test judges recorded ones.
lockstep_script_test(trace.merge COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/merge_test.py)
lockstep_script_test(trace.verdicts COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/verdicts_test.py)
lockstep_script_test(trace.verdicts_of_runs LABEL long COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/verdicts_test.py --run)
lockstep_script_test(trace.perfetto COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/perfetto_test.py)
