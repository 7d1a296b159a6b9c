target_sources(comm_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/backend/fake_gpu.cpp)
# The exchange between processes, under mpirun.
add_executable(mpi_exchange_check ${CMAKE_CURRENT_LIST_DIR}/mpi_exchange_check.cpp)
target_include_directories(mpi_exchange_check PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(mpi_exchange_check PRIVATE lockstep_comm lockstep_flags fmt::fmt)
lockstep_script_test(comm.mpi COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/mpi_exchange_test.sh)
