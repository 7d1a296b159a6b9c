target_sources(optim_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/backend/fake_gpu.cpp)
