target_sources(input_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/backend/fake_gpu.cpp)
