# The module's kernels without a GPU: a runtime of CUDA whose GPU interprets PTX, and libraries that propose nothing. See
# README.md. Included from tests/cuda/tests.cmake where the module is built.
set(INTERPRETER ${CMAKE_CURRENT_LIST_DIR})
set(INTERPRETED_GPU ${CMAKE_BINARY_DIR}/interpreted-gpu)
file(MAKE_DIRECTORY ${INTERPRETED_GPU}/lib ${INTERPRETED_GPU}/libraries ${INTERPRETED_GPU}/ptx)
set(INTERPRETER_SOURCES)
foreach(PART costs cudart cudart_memory cudart_streams cudart_unknown decode floats integers launch machine warp_barriers memory
    memory_instructions moves operands order pinned_copies problems ptx_text report shadow streams warp)
  list(APPEND INTERPRETER_SOURCES ${INTERPRETER}/${PART}.cpp)
endforeach()

# Under the names by which the module asks for them.
function(lockstep_instead_of_cuda TARGET NAME VERSION MAP)
  add_library(${TARGET} SHARED ${ARGN})
  set_target_properties(${TARGET} PROPERTIES OUTPUT_NAME ${NAME} SOVERSION ${VERSION}
    LIBRARY_OUTPUT_DIRECTORY ${INTERPRETED_GPU}/lib)
  target_include_directories(${TARGET} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_include_directories(${TARGET} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE_DIR})
  target_link_libraries(${TARGET} PRIVATE lockstep_flags fmt::fmt)
  target_link_options(${TARGET} PRIVATE -Wl,--version-script=${INTERPRETER}/${MAP}.map)
endfunction()
lockstep_instead_of_cuda(interpreted_cudart cudart 13 cudart ${INTERPRETER_SOURCES})
lockstep_hot_tests(interpreted_cudart)
# Its loops over 32 lanes. Tests run on the machine that builds them.
include(CheckCXXSourceRuns)
check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"x86-64-v3\") ? 0 : 1; }" LOCKSTEP_RUNS_X86_64_V3)
if(LOCKSTEP_RUNS_X86_64_V3)
  target_compile_options(interpreted_cudart PRIVATE -march=x86-64-v3)
endif()
lockstep_instead_of_cuda(no_cublaslt cublasLt 13 lt ${INTERPRETER}/no_cublaslt.cpp)
lockstep_instead_of_cuda(no_cudnn cudnn 9 cudnn ${INTERPRETER}/no_cudnn.cpp)

add_custom_command(OUTPUT ${INTERPRETED_GPU}/ptx/stamp
  COMMAND sh -c "rm -f *.ptx && '${CUDAToolkit_BIN_DIR}/cuobjdump' -xptx all '$<TARGET_FILE:lockstep_cuda>' >stamp"
  WORKING_DIRECTORY ${INTERPRETED_GPU}/ptx DEPENDS lockstep_cuda VERBATIM)
add_custom_target(module_ptx ALL DEPENDS ${INTERPRETED_GPU}/ptx/stamp)

# What each instruction computes and each check finds, on small texts.
add_executable(cuda_interpreter_test ${INTERPRETER_SOURCES} ${INTERPRETER}/checks_test.cpp ${INTERPRETER}/calls_test.cpp
  ${INTERPRETER}/costs_test.cpp
  ${INTERPRETER}/meanings_test.cpp ${INTERPRETER}/shared_test.cpp)
target_include_directories(cuda_interpreter_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_include_directories(cuda_interpreter_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(cuda_interpreter_test PRIVATE lockstep_flags fmt::fmt GTest::gtest_main)
gtest_discover_tests(cuda_interpreter_test TEST_PREFIX cuda. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS cuda)

# Every kernel of the module decodes: what is not known is named, whether or not it is launched.
add_executable(cuda_ptx_check ${INTERPRETER}/ptx_check.cpp ${INTERPRETER_SOURCES})
target_include_directories(cuda_ptx_check PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_include_directories(cuda_ptx_check SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(cuda_ptx_check PRIVATE lockstep_flags fmt::fmt)

# The module's tests on it. Each leaves reports, from which the last one counts what was executed.
set(INTERPRETED_TESTS)
foreach(PART step ops two_bytes jobs)
  set(TEST_OF_PART cuda.interpreted.${PART})
  lockstep_script_test(${TEST_OF_PART} LONG COMMAND python3 ${INTERPRETER}/${PART}_test.py
    ${INTERPRETED_GPU} ${STAND_INS} $<TARGET_FILE:cuda_ops_test> $<TARGET_FILE:stand_in_grids>)
  set_tests_properties(${TEST_OF_PART} PROPERTIES FIXTURES_SETUP interpreted)
endforeach()
lockstep_script_test(cuda.interpreted.coverage COMMAND python3 ${INTERPRETER}/coverage_test.py
  ${INTERPRETED_GPU} $<TARGET_FILE:cuda_ptx_check>)
set_tests_properties(cuda.interpreted.coverage PROPERTIES FIXTURES_REQUIRED interpreted)

# Several ranks: libraries with kernels of their own on this GPU's streams, and one of them in the place of NCCL. What it
# finds, in one process that has both ranks; and whole jobs.
target_sources(interpreted_cudart PRIVATE ${INTERPRETER}/cudart_library.cpp)
set(INTERPRETED_NCCL)
foreach(PART nccl nccl_communicator nccl_kernel nccl_links)
  list(APPEND INTERPRETED_NCCL ${INTERPRETER}/${PART}.cpp)
endforeach()
lockstep_instead_of_cuda(interpreted_nccl nccl 2 nccl ${INTERPRETED_NCCL})
target_include_directories(interpreted_nccl SYSTEM PRIVATE ${NCCL_INCLUDE_DIR})
target_link_libraries(interpreted_nccl PRIVATE interpreted_cudart)
target_sources(cuda_interpreter_test PRIVATE ${INTERPRETER}/cudart_library.cpp ${INTERPRETED_NCCL}
  ${INTERPRETER}/nccl_test.cpp)
target_include_directories(cuda_interpreter_test SYSTEM PRIVATE ${NCCL_INCLUDE_DIR})
foreach(PART ranks launch)
  lockstep_script_test(cuda.interpreted.${PART} LONG COMMAND python3 ${INTERPRETER}/${PART}_test.py
    ${INTERPRETED_GPU} ${STAND_INS} $<TARGET_FILE:cuda_ops_test> $<TARGET_FILE:stand_in_grids>)
  set_tests_properties(cuda.interpreted.${PART} PROPERTIES FIXTURES_SETUP interpreted)
endforeach()

# Libraries that compute, in a folder that goes before the others' where a test wants them.
function(lockstep_computing_library TARGET NAME VERSION MAP)
  lockstep_instead_of_cuda(${TARGET} ${NAME} ${VERSION} ${MAP} ${INTERPRETER}/library_elements.cpp ${ARGN})
  set_target_properties(${TARGET} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${INTERPRETED_GPU}/libraries)
  target_include_directories(${TARGET} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${TARGET} PRIVATE interpreted_cudart)
  lockstep_hot_tests(${TARGET})
endfunction()
set(INTERPRETED_LT ${INTERPRETER}/cublaslt.cpp ${INTERPRETER}/lt_kernel.cpp)
set(INTERPRETED_CUDNN ${INTERPRETER}/cudnn.cpp)
foreach(PART attention attention_graph attention_kernel convolution convolution_kernel descriptors program values)
  list(APPEND INTERPRETED_CUDNN ${INTERPRETER}/cudnn_${PART}.cpp)
endforeach()
lockstep_computing_library(interpreted_cublaslt cublasLt 13 lt ${INTERPRETED_LT})
lockstep_computing_library(interpreted_cudnn cudnn 9 cudnn ${INTERPRETED_CUDNN})
target_sources(cuda_interpreter_test PRIVATE ${INTERPRETED_LT} ${INTERPRETED_CUDNN}
  ${INTERPRETER}/library_elements.cpp ${INTERPRETER}/lt_test.cpp ${INTERPRETER}/cudnn_test.cpp
  ${INTERPRETER}/cudnn_attention_test.cpp)
# It has cuDNN's frontend, which is large.
set_source_files_properties(${INTERPRETER}/cudnn_attention_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_include_directories(cuda_interpreter_test PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_include_directories(cuda_interpreter_test SYSTEM PRIVATE ${CUDNN_INCLUDE_DIR})
lockstep_script_test(cuda.interpreted.libraries LONG COMMAND python3 ${INTERPRETER}/libraries_test.py
  ${INTERPRETED_GPU} ${STAND_INS} $<TARGET_FILE:cuda_ops_test> $<TARGET_FILE:stand_in_grids>)
set_tests_properties(cuda.interpreted.libraries PROPERTIES FIXTURES_SETUP interpreted)

# That the table of costs in docs/design/gpu-costs.md is that of these kernels. ResNet-50's takes minutes.
lockstep_script_test(cuda.interpreted.costs COMMAND python3 ${INTERPRETER}/costs.py ${CMAKE_BINARY_DIR} --check
  --model gpt2)
lockstep_script_test(cuda.costs_of_resnet50 LABEL long TIMEOUT 3600 COMMAND python3 ${INTERPRETER}/costs.py
  ${CMAKE_BINARY_DIR} --check --model resnet50)

# That the tests find faults: six edits of the PTX. `mutations.py build/release` tries many.
lockstep_script_test(cuda.interpreted.mutations LONG COMMAND python3 ${INTERPRETER}/mutations.py ${CMAKE_BINARY_DIR} --smoke)
