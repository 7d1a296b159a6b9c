# Tokens and decoded text beside Hugging Face's tokenizers, which are installed for it.
lockstep_script_test(tokenizers COMMAND ${TEST_PYTHON} --packages tests/tokenizers/requirements.txt
  ${CMAKE_CURRENT_LIST_DIR}/tokenizers_test.py)
