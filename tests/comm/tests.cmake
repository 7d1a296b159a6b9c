target_sources(comm_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/device/fake_gpu.cpp)
target_link_libraries(comm_test PRIVATE MPI::MPI_CXX)
# The all-reduce between processes, under mpirun.
add_executable(mpi_reduce_check ${CMAKE_CURRENT_LIST_DIR}/mpi_reduce_check.cpp)
target_include_directories(mpi_reduce_check PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(mpi_reduce_check PRIVATE lockstep_reduce lockstep_flags fmt::fmt)
lockstep_script_test(comm.mpi COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/mpi_reduce_test.sh)
# Ranks that die at a moment of the test's choice.
add_library(stop_at_mapping SHARED ${CMAKE_CURRENT_LIST_DIR}/stop_at_mapping.cpp)
target_link_libraries(stop_at_mapping PRIVATE lockstep_flags ${CMAKE_DL_LIBS})
set_target_properties(stop_at_mapping PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
lockstep_script_test(comm.killed_ranks ALONE COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/killed_ranks_test.py)
# Ranks where /dev/shm is small.
add_executable(small_shm_check ${CMAKE_CURRENT_LIST_DIR}/small_shm_check.cpp)
target_include_directories(small_shm_check PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(small_shm_check PRIVATE lockstep_reduce lockstep_flags fmt::fmt)
lockstep_script_test(comm.small_shm COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/small_shm_test.py)
