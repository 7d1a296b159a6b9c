# A real Slurm. Not part of `make test`: `make test-slurm` installs and runs it.
lockstep_script_test(slurm.cluster LABEL slurm TIMEOUT 1800 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/slurm_test.py)
# The batch scripts alone.
lockstep_script_test(slurm.scripts COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/scripts_test.py)
