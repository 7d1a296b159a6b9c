# Exports beside the programs that they are for, which are installed for it.
add_executable(predictions ${CMAKE_CURRENT_LIST_DIR}/predictions.cpp)
target_link_libraries(predictions PRIVATE lockstep_train lockstep_flags nlohmann_json::nlohmann_json)
lockstep_script_test(formats.onnx COMMAND ${TEST_PYTHON} --packages tests/onnx/requirements.txt
  ${CMAKE_CURRENT_LIST_DIR}/onnx_test.py)
lockstep_script_test(formats.torch LABEL long TIMEOUT 1800 COMMAND ${TEST_PYTHON}
  --packages tests/formats/requirements.txt ${CMAKE_CURRENT_LIST_DIR}/torch_test.py)
lockstep_script_test(formats.finetune LABEL long TIMEOUT 1800 COMMAND ${TEST_PYTHON}
  --packages tests/formats/requirements.txt ${CMAKE_CURRENT_LIST_DIR}/finetune_test.py)
