lockstep_script_test(schema.schema COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/schema_test.py)
lockstep_script_test(schema.changes COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/changes_test.py)
lockstep_script_test(schema.sets COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/sets_test.py)
lockstep_script_test(schema.drawn_options COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/drawn_options_test.py)
