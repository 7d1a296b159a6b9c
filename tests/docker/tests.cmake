lockstep_script_test(docker.sbom COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/sbom_test.py)
# Builds the image, which `make test` has no time for.
lockstep_script_test(docker.image LABEL kubernetes TIMEOUT 3600 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/image_test.py)
lockstep_script_test(docker.cuda_image LABEL long TIMEOUT 3600 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/cuda_image_test.py)
