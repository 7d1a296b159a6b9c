lockstep_script_test(house.includes COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/check_includes.py)
lockstep_script_test(house.device_code COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/device_code_test.py)
lockstep_script_test(house.check_includes COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/check_includes_test.py)
foreach(release 12 13)
  lockstep_script_test(house.debian_${release} LABEL long TIMEOUT 7200
                       COMMAND ${CMAKE_SOURCE_DIR}/scripts/debian.sh ${release})
endforeach()
lockstep_script_test(house.scripts COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/scripts_test.py)
lockstep_script_test(house.completion COMMAND ${CMAKE_CURRENT_LIST_DIR}/completion_test.sh)
