lockstep_script_test(train.same_bits TIMEOUT 600 COMMAND ${CMAKE_COMMAND} -E env LOCKSTEP=$<TARGET_FILE:lockstep>
  ${CMAKE_SOURCE_DIR}/scripts/same-bits.sh --quick)
