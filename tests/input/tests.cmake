target_sources(input_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/device/fake_gpu.cpp)
