# Rules, dashboards and the exporter with a real Prometheus.
lockstep_script_test(observability.rules OF_CLUSTERS COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/rules_test.py)
lockstep_script_test(observability.dashboards OF_CLUSTERS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/dashboards_test.py)
lockstep_script_test(observability.dashboard_linter COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/dashboard_linter_test.py)
lockstep_script_test(observability.prometheus ALONE COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/prometheus_test.py
  $<TARGET_FILE:nvml_stand_in>)
lockstep_script_test(observability.gpu_panels OF_CLUSTERS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/gpu_panels_test.py
  $<TARGET_FILE:stand_in_this_build> ${CMAKE_BINARY_DIR}/stand-ins)
lockstep_script_test(observability.parts COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/parts_test.py)
lockstep_script_test(observability.kept_steps COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/kept_steps_test.py)
lockstep_script_test(observability.goodput WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/goodput_test.py)
lockstep_script_test(observability.targets WAITS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/targets_test.py)
lockstep_script_test(observability.energy ALONE COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/energy_test.py
  $<TARGET_FILE:nvml_stand_in>)
lockstep_script_test(observability.earlier_runs COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/earlier_runs_test.py)
# What TensorBoard reads, and it reads it itself.
lockstep_script_test(observability.tensorboard COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/tensorboard_test.py)
