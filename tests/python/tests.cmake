# python/lockstep_reader, on what the program writes. All but `numpy` and `torch` use Python alone.
foreach(WHAT run events checkpoint damage fit sweeps package page)
  lockstep_script_test(python.${WHAT} COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/${WHAT}_test.py)
endforeach()
lockstep_script_test(python.numpy COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/numpy_test.py)
lockstep_script_test(python.event_types COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/python_events.py --check)
foreach(WHAT torch page)
  lockstep_script_test(python.with_torch.${WHAT} LABEL long COMMAND ${TEST_PYTHON} --packages tests/peer/requirements.txt
    ${CMAKE_CURRENT_LIST_DIR}/${WHAT}_test.py)
endforeach()
