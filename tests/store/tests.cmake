# Object stores: a server of the tests' own, which checks what it is asked, and a real one.
lockstep_script_test(store.objects COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/objects_test.py)
lockstep_script_test(store.keys COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/keys_test.py)
lockstep_script_test(store.copies OF_CLUSTERS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/copies_test.py)
lockstep_script_test(store.real_server LABEL kubernetes
  COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/objects_test.py --real-server)
lockstep_script_test(store.slow_link LABEL long TIMEOUT 1800 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/slow_link_test.py)
