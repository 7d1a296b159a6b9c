lockstep_script_test(launch.faults COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/launch_test.py)
lockstep_script_test(launch.emulated_hosts COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/emulated_hosts_test.py)
