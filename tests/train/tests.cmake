lockstep_script_test(train.same_bits COMMAND ${CMAKE_SOURCE_DIR}/scripts/same-bits.sh --quick)
lockstep_script_test(train.same_bits_images COMMAND ${CMAKE_SOURCE_DIR}/scripts/same-bits.sh --quick
  ${CMAKE_CURRENT_LIST_DIR}/same_bits_images.yaml)
lockstep_script_test(train.same_bits_whole LABEL long TIMEOUT 3600 COMMAND ${CMAKE_SOURCE_DIR}/scripts/same-bits.sh)
# What the examples reach; those that need real data find it by $LOCKSTEP_DATA.
foreach(EXAMPLE digits digits-mlp digits-one-cycle digits-accumulate digits-bf16 digits-large-batch digits-mixup digits-vit
        digits-mobilenet digits-unet digits-autoencoder mnist-cnn two-towers shakespeare-bert shakespeare-gpt shakespeare-llama
        shakespeare-lstm shakespeare-pipeline shakespeare-sharded)
  lockstep_script_test(train.accuracy.${EXAMPLE} LABEL long TIMEOUT 3600
                       COMMAND ${CMAKE_SOURCE_DIR}/scripts/accuracy.py ${EXAMPLE})
endforeach()
lockstep_script_test(train.accuracy.cifar10-resnet20 LABEL long TIMEOUT 14400
                     COMMAND ${CMAKE_SOURCE_DIR}/scripts/accuracy.py cifar10-resnet20 --seeds 1,2,3)

# Preloaded into the program by checkpoint_faults_test.py.
add_library(fault_shim MODULE ${CMAKE_CURRENT_LIST_DIR}/fault_shim.cpp)
target_link_libraries(fault_shim PRIVATE lockstep_flags ${CMAKE_DL_LIBS})
lockstep_script_test(train.checkpoint_faults TIMEOUT 3600 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/checkpoint_faults_test.py
  $<TARGET_FILE:fault_shim>)
lockstep_script_test(train.trainer_status COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/trainer_status_test.py)
lockstep_script_test(train.change_settings COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/change_settings_test.py)
lockstep_script_test(train.examples TIMEOUT 1200 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/examples_test.py)
lockstep_script_test(train.checkpoint_readers COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/checkpoint_readers_test.py)

# The messages of a start, between processes.
add_executable(mpi_start_messages_check ${CMAKE_CURRENT_LIST_DIR}/mpi_start_messages_check.cpp)
target_include_directories(mpi_start_messages_check PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(mpi_start_messages_check PRIVATE lockstep_train lockstep_flags fmt::fmt)
lockstep_script_test(train.start_messages COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/mpi_start_messages_test.sh)
