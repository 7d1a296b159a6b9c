# The program on data sets of every kind, and fetching from servers on this machine.
lockstep_script_test(data.commands COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/data_commands_test.py)
lockstep_script_test(data.fetch COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/fetch_test.py)
lockstep_script_test(data.bad_samples COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/bad_samples_test.py)
lockstep_script_test(data.tables COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/tables_test.py)
lockstep_script_test(data.normalized_targets COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/normalized_targets_test.py)
lockstep_script_test(data.texts COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/texts_test.py)
lockstep_script_test(data.weights COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/weights_test.py)
target_compile_definitions(data_test PRIVATE PARQUET_FOLDER="${CMAKE_CURRENT_LIST_DIR}/parquet")
