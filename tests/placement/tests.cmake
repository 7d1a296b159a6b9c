# Where a job runs changes no bit of it: jobs and placements are drawn from fixed seeds, and held against one rank.
lockstep_script_test(placement.fuzz LONG TIMEOUT 1800 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/placement_fuzz.py
  --seeds 1-24)
lockstep_script_test(placement.fuzz_long LABEL long TIMEOUT 43200 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/placement_fuzz.py
  --seeds 1001-3000)
if(TARGET interpreted_nccl)
  lockstep_script_test(placement.fuzz_gpu LABEL long TIMEOUT 21600 COMMAND python3
    ${CMAKE_CURRENT_LIST_DIR}/placement_fuzz.py --seeds 5001-5100 --gpu ${INTERPRETED_GPU} ${STAND_INS})
endif()

# What `plan` says of memory, against 24 placements.
lockstep_script_test(placement.plan_memory LABEL long TIMEOUT 7200 ALONE COMMAND python3
  ${CMAKE_CURRENT_LIST_DIR}/plan_memory.py)
