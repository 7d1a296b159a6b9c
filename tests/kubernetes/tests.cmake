# The chart and Kubernetes. What needs no program but lockstep itself is part of `make test`; the others build theirs:
# those of the chart Helm, the others Kubernetes too. Three clusters with nodes may be beside each other: tests with the
# same LAB take turns.
function(lockstep_kubernetes_test NAME FILE)
  cmake_parse_arguments(TEST "" "LABEL;LAB" "" ${ARGN})
  if(NOT TEST_LABEL)
    set(TEST_LABEL kubernetes)
  endif()
  lockstep_script_test(kubernetes.${NAME} LABEL ${TEST_LABEL} TIMEOUT 7200
                       COMMAND ${TEST_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/${FILE})
  if(DEFINED TEST_LAB)
    set_tests_properties(kubernetes.${NAME} PROPERTIES RESOURCE_LOCK lab-${TEST_LAB} COST 1000)
    set_property(TEST kubernetes.${NAME} APPEND PROPERTY ENVIRONMENT LAB=${TEST_LAB})
  endif()
endfunction()

lockstep_script_test(kubernetes.values_are_current COMMAND ${TEST_PYTHON} ${CMAKE_SOURCE_DIR}/scripts/chart.py --check)
lockstep_script_test(kubernetes.manifests_are_current LABEL charts TIMEOUT 3600
                     COMMAND ${TEST_PYTHON} ${CMAKE_SOURCE_DIR}/scripts/plain_manifests.py --check)
lockstep_kubernetes_test(chart chart_test.py LABEL charts)
lockstep_kubernetes_test(corpus corpus_test.py LABEL charts)
lockstep_kubernetes_test(control_plane control_plane_test.py)
lockstep_kubernetes_test(kueue kueue_test.py)
lockstep_kubernetes_test(backoff backoff_test.py)
lockstep_kubernetes_test(gang gang_test.py)
lockstep_kubernetes_test(entrypoint entrypoint_test.py)
lockstep_kubernetes_test(cluster cluster_test.py LAB 0)
lockstep_kubernetes_test(claims claims_cluster_test.py LAB 2)
lockstep_kubernetes_test(lab lab_test.py LAB 1)
lockstep_kubernetes_test(sweep sweep_cluster_test.py LAB 1)
lockstep_kubernetes_test(teams teams_cluster_test.py LAB 1)
lockstep_kubernetes_test(store store_cluster_test.py LAB 2)
lockstep_kubernetes_test(network network_cluster_test.py LAB 2)
lockstep_kubernetes_test(metrics metrics_cluster_test.py LAB 1)
