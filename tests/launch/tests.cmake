lockstep_script_test(launch.faults ALONE COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/launch_test.py)
lockstep_script_test(launch.emulated_hosts ALONE COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/emulated_hosts_test.py)
lockstep_script_test(launch.disk WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/disk_test.py
                     $<TARGET_FILE:fault_shim>)
lockstep_script_test(launch.unfit_hosts WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/unfit_hosts_test.py)
lockstep_script_test(launch.ssh WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/ssh_test.py)
lockstep_script_test(launch.pods WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/pods_test.py)
lockstep_script_test(launch.succession WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/succession_test.py)
lockstep_script_test(launch.many_ranks LABEL long TIMEOUT 3600
                     COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/many_ranks_test.py)
lockstep_script_test(launch.chaos_verdict COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/chaos_test.py)
lockstep_script_test(launch.chaos WAITS COMMAND ${CMAKE_SOURCE_DIR}/scripts/chaos.sh 1 46)
lockstep_script_test(launch.chaos_long LABEL long TIMEOUT 3600 COMMAND ${CMAKE_SOURCE_DIR}/scripts/chaos.sh 2 200)
foreach(HOW parts=2 sharding=optimizer sharding=gradients sharding=parameters)
  string(REPLACE "=" "_" NAME ${HOW})
  lockstep_script_test(launch.chaos_${NAME} LABEL long TIMEOUT 3600
                       COMMAND ${CMAKE_SOURCE_DIR}/scripts/chaos.sh --set parallel.${HOW} 7 45)
endforeach()
lockstep_script_test(launch.output WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/output_test.py)
