lockstep_script_test(train.same_bits COMMAND ${CMAKE_SOURCE_DIR}/scripts/same-bits.sh --quick)
