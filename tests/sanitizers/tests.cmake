foreach(PRESET asan tsan)
  lockstep_script_test(sanitizers.${PRESET} LABEL long TIMEOUT 14400
                       COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/sanitized_test.py ${PRESET})
endforeach()
