lockstep_script_test(house.includes COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/check_includes.py)
lockstep_script_test(house.check_includes COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/check_includes_test.py)
lockstep_script_test(house.debian_13 LABEL long TIMEOUT 7200 COMMAND ${CMAKE_SOURCE_DIR}/scripts/debian13.sh)
lockstep_script_test(house.scripts COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/scripts_test.py)
