# Training step by step beside PyTorch, which is installed for it.
lockstep_script_test(peer.pytorch LABEL long TIMEOUT 3600 COMMAND ${TEST_PYTHON}
  --packages tests/peer/requirements.txt ${CMAKE_CURRENT_LIST_DIR}/peer_test.py)
lockstep_script_test(peer.coming_from LABEL long COMMAND ${TEST_PYTHON}
  --packages tests/peer/requirements.txt ${CMAKE_CURRENT_LIST_DIR}/coming_from_test.py)
