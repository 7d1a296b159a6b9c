# GPUs on a machine without any: stand-ins for the driver and the module, and what of the real module can be checked.
set(STAND_INS ${CMAKE_BINARY_DIR}/stand-ins)
add_library(stand_in_driver SHARED ${CMAKE_CURRENT_LIST_DIR}/stand_in_driver.cpp)
set_target_properties(stand_in_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${STAND_INS})
target_link_libraries(stand_in_driver PRIVATE lockstep_flags)
# Under the name by which a rank on a GPU asks for it.
add_library(stand_in_nvml SHARED ${CMAKE_SOURCE_DIR}/tests/telemetry/nvml_stand_in.cpp)
set_target_properties(stand_in_nvml PROPERTIES OUTPUT_NAME nvidia-ml SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${STAND_INS})
target_link_libraries(stand_in_nvml PRIVATE lockstep_flags)
foreach(KIND this_build other_build grids checked)
  add_library(stand_in_${KIND} MODULE ${CMAKE_CURRENT_LIST_DIR}/stand_in_module.cpp)
  set_target_properties(stand_in_${KIND} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${STAND_INS})
  target_include_directories(stand_in_${KIND} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(stand_in_${KIND} PRIVATE lockstep_train lockstep_flags)
  add_dependencies(device_test stand_in_${KIND})
endforeach()
target_compile_definitions(stand_in_this_build PRIVATE "STAND_IN_BUILD_ID=lockstep::build_id()"
  STAND_IN_KERNELS={})
target_compile_definitions(stand_in_other_build PRIVATE "STAND_IN_BUILD_ID=\"0123456789abcdef\"" STAND_IN_KERNELS={})
target_compile_definitions(stand_in_grids PRIVATE "STAND_IN_BUILD_ID=lockstep::build_id()"
  "STAND_IN_KERNELS=lockstep::ops::host_grid_kernels()")
target_link_libraries(stand_in_grids PRIVATE ops_driver)
target_compile_definitions(stand_in_checked PRIVATE "STAND_IN_BUILD_ID=lockstep::build_id()"
  STAND_IN_KERNELS={} STAND_IN_CHECKED=1)
target_sources(stand_in_checked PRIVATE ${CMAKE_SOURCE_DIR}/tests/device/fake_gpu.cpp)

add_dependencies(device_test stand_in_driver stand_in_nvml)
target_sources(device_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/device/fake_gpu.cpp)
target_compile_definitions(device_test PRIVATE OTHER_LIBRARY="$<TARGET_FILE:stand_in_driver>"
  OTHER_BUILD="$<TARGET_FILE:stand_in_other_build>" THIS_BUILD="$<TARGET_FILE:stand_in_this_build>")
lockstep_script_test(cuda.messages OF_CLUSTERS COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/gpu_messages_test.py
  $<TARGET_FILE:stand_in_this_build> ${STAND_INS})
foreach(TEST training run parts sharding sweep)
  lockstep_script_test(cuda.${TEST} LONG COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/gpu_${TEST}_test.py
    $<TARGET_FILE:stand_in_this_build> $<TARGET_FILE:stand_in_grids> $<TARGET_FILE:stand_in_checked> ${STAND_INS})
endforeach()
lockstep_script_test(cuda.launch COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/gpu_launch_test.py
  $<TARGET_FILE:stand_in_this_build> ${STAND_INS})
lockstep_script_test(cuda.real_gpu ALONE TIMEOUT 3600 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/real_gpu_test.py)
set(TOOLKIT_BIN none)
if(LOCKSTEP_CUDA_FOUND)
  set(TOOLKIT_BIN ${CUDAToolkit_BIN_DIR})
endif()
lockstep_script_test(cuda.sanitizer LABEL long TIMEOUT 14400 COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/sanitizer_test.py
  $<TARGET_FILE:cuda_ops_test> ${TOOLKIT_BIN})
lockstep_script_test(cuda.trace COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/gpu_trace_test.py
  $<TARGET_FILE:stand_in_this_build> ${STAND_INS})

add_executable(cuda_ops_test ${CMAKE_CURRENT_LIST_DIR}/ops_on_gpu_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cases_for_gpus.cpp ${CMAKE_CURRENT_LIST_DIR}/kernel_results.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step_on_gpu_test.cpp)
target_include_directories(cuda_ops_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(cuda_ops_test PRIVATE ops_driver lockstep_train lockstep_flags fmt::fmt GTest::gtest_main)
gtest_discover_tests(cuda_ops_test TEST_PREFIX cuda. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS cuda)

if(LOCKSTEP_CUDA_FOUND)
  add_executable(cuda_module_check ${CMAKE_CURRENT_LIST_DIR}/module_check.cpp)
  target_link_libraries(cuda_module_check PRIVATE lockstep_ops lockstep_flags fmt::fmt)
  add_dependencies(cuda_module_check lockstep_cuda)
  lockstep_script_test(cuda.module COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/module_test.py
    $<TARGET_FILE:lockstep_cuda> $<TARGET_FILE:cuda_module_check>)
  lockstep_script_test(cuda.kernel_limits COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/kernel_limits_test.py
    $<TARGET_FILE:lockstep_cuda> ${TOOLKIT_BIN})

  # What the module hides from all others, built into a program.
  file(GLOB MODULE_HOST_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/cuda/*.cpp
    ${CMAKE_SOURCE_DIR}/src/device/cuda/*.cu ${CMAKE_SOURCE_DIR}/src/comm/transport/nccl_*.cpp)
  add_executable(cuda_test ${CMAKE_CURRENT_LIST_DIR}/host_calls_test.cpp ${CMAKE_CURRENT_LIST_DIR}/nvml_header_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/profiler_test.cpp ${MODULE_HOST_SOURCES})
  target_include_directories(cuda_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(cuda_test SYSTEM PRIVATE ${CUDNN_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
  target_link_libraries(cuda_test PRIVATE lockstep_reduce lockstep_flags lockstep_cuda_flags CUDA::cudart CUDA::cublasLt
    ${CUDNN_LIBRARY} CUDA::nvrtc ${NCCL_LIBRARY} fmt::fmt GTest::gtest_main)
  gtest_discover_tests(cuda_test TEST_PREFIX cuda. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS cuda)

  # How libraries are called, on scripted ones: of CUDA's it has the headers alone.
  set(CUDA_FOLDER ${CMAKE_SOURCE_DIR}/src/device/cuda)
  add_executable(cuda_calls_test ${CMAKE_CURRENT_LIST_DIR}/library_calls_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/scripted_cuda.cpp ${CUDA_FOLDER}/check.cpp ${CUDA_FOLDER}/cuda_gpu.cpp
    ${CUDA_FOLDER}/handles.cpp ${CUDA_FOLDER}/lt_product.cpp)
  target_include_directories(cuda_calls_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(cuda_calls_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE_DIR})
  target_link_libraries(cuda_calls_test PRIVATE lockstep_device lockstep_flags fmt::fmt GTest::gtest_main)
  gtest_discover_tests(cuda_calls_test TEST_PREFIX cuda. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS cuda)

  # NCCL's calls, with a stand-in in the place of the library.
  file(GLOB NCCL_CALLERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/comm/transport/nccl_*.cpp)
  add_executable(cuda_nccl_test ${CMAKE_CURRENT_LIST_DIR}/nccl_group_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/scripted_nccl.cpp ${NCCL_CALLERS} ${CMAKE_SOURCE_DIR}/src/device/cuda/check.cpp)
  target_include_directories(cuda_nccl_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(cuda_nccl_test SYSTEM PRIVATE ${CUDNN_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
  target_link_libraries(cuda_nccl_test PRIVATE lockstep_reduce lockstep_flags CUDA::cudart CUDA::cublasLt
    ${CUDNN_LIBRARY} fmt::fmt GTest::gtest_main)
  gtest_discover_tests(cuda_nccl_test TEST_PREFIX cuda. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS cuda)

  # cuDNN's plans for GPUs that are described to it. It wants a driver and a compiler, and uses neither GPU.
  add_library(idle_driver SHARED ${CMAKE_CURRENT_LIST_DIR}/idle_driver.cpp)
  set_target_properties(idle_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/idle-driver)
  target_link_libraries(idle_driver PRIVATE lockstep_flags)
  add_executable(cuda_plans_test ${CMAKE_CURRENT_LIST_DIR}/cudnn_plans_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cudnn_fusions_test.cpp ${CMAKE_CURRENT_LIST_DIR}/described_gpu.cpp
    ${CMAKE_CURRENT_LIST_DIR}/numerical_notes.cpp ${CMAKE_SOURCE_DIR}/src/device/cuda/check.cpp
    ${CMAKE_SOURCE_DIR}/src/device/cuda/cudnn_attention.cpp ${CMAKE_SOURCE_DIR}/src/device/cuda/cudnn_convolution.cpp
    ${CMAKE_SOURCE_DIR}/src/device/cuda/cudnn_plan.cpp ${CMAKE_SOURCE_DIR}/src/device/cuda/handles.cpp
    ${CMAKE_SOURCE_DIR}/src/device/cuda/nvrtc.cpp)
  add_dependencies(cuda_plans_test idle_driver)
  target_include_directories(cuda_plans_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(cuda_plans_test SYSTEM PRIVATE ${CUDNN_INCLUDE_DIR})
  target_link_libraries(cuda_plans_test PRIVATE lockstep_train lockstep_flags CUDA::cudart CUDA::cublasLt
    ${CUDNN_LIBRARY} CUDA::nvrtc fmt::fmt GTest::gtest_main)
  gtest_discover_tests(cuda_plans_test TEST_PREFIX cuda. TEST_FILTER -*ResNet50InTwoBytes* DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS cuda
    ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/idle-driver:$ENV{LD_LIBRARY_PATH}")
  lockstep_script_test(cuda.plans_of_resnet50 LABEL long TIMEOUT 3600 COMMAND ${CMAKE_COMMAND} -E env
    LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/idle-driver $<TARGET_FILE:cuda_plans_test>
    --gtest_filter=*ResNet50InTwoBytes*)

  # What the plans compute, on a real GPU.
  add_executable(cuda_results_test ${CMAKE_CURRENT_LIST_DIR}/cudnn_results_test.cpp
    ${CMAKE_SOURCE_DIR}/src/device/cuda/check.cpp ${CMAKE_SOURCE_DIR}/src/device/cuda/cudnn_convolution.cpp
    ${CMAKE_SOURCE_DIR}/src/device/cuda/cudnn_plan.cpp ${CMAKE_SOURCE_DIR}/src/device/cuda/handles.cpp
    ${CMAKE_SOURCE_DIR}/src/device/cuda/nvrtc.cpp)
  target_include_directories(cuda_results_test SYSTEM PRIVATE ${CUDNN_INCLUDE_DIR})
  target_link_libraries(cuda_results_test PRIVATE lockstep_train lockstep_flags CUDA::cudart CUDA::cublasLt
    ${CUDNN_LIBRARY} CUDA::nvrtc fmt::fmt GTest::gtest_main)
  gtest_discover_tests(cuda_results_test TEST_PREFIX cuda. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS cuda)

  include(${CMAKE_CURRENT_LIST_DIR}/interpreter/tests.cmake)
else()
  foreach(NAME cuda.module cuda.kernel_limits)
    lockstep_script_test(${NAME} COMMAND sh -c "echo skipped: there was no CUDA toolkit when CMake ran; exit 77")
  endforeach()
endif()
