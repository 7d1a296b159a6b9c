# The chart and Kubernetes. What needs no program but lockstep itself is part of `make test`; the others build theirs:
# those of the chart Helm, the others Kubernetes too.
lockstep_script_test(kubernetes.values_are_current COMMAND ${TEST_PYTHON} ${CMAKE_SOURCE_DIR}/scripts/chart.py --check)
lockstep_script_test(kubernetes.chart LABEL charts TIMEOUT 3600
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/chart_test.py)
lockstep_script_test(kubernetes.control_plane LABEL kubernetes TIMEOUT 3600
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/control_plane_test.py)
lockstep_script_test(kubernetes.kueue LABEL kubernetes TIMEOUT 3600
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/kueue_test.py)
lockstep_script_test(kubernetes.backoff LABEL kubernetes TIMEOUT 3600
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/backoff_test.py)
lockstep_script_test(kubernetes.corpus LABEL charts TIMEOUT 3600
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/corpus_test.py)
lockstep_script_test(kubernetes.entrypoint LABEL kubernetes TIMEOUT 3600
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/entrypoint_test.py)
lockstep_script_test(kubernetes.manifests_are_current LABEL charts TIMEOUT 3600
                     COMMAND ${TEST_PYTHON} ${CMAKE_SOURCE_DIR}/scripts/plain_manifests.py --check)
lockstep_script_test(kubernetes.cluster LABEL kubernetes TIMEOUT 7200
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/cluster_test.py)
lockstep_script_test(kubernetes.sweep LABEL kubernetes TIMEOUT 7200
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/sweep_cluster_test.py)
lockstep_script_test(kubernetes.teams LABEL kubernetes TIMEOUT 7200
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/teams_cluster_test.py)
lockstep_script_test(kubernetes.store LABEL kubernetes TIMEOUT 7200
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/store_cluster_test.py)
lockstep_script_test(kubernetes.network LABEL kubernetes TIMEOUT 7200
                     COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/network_cluster_test.py)
