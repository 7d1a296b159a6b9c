// What tests of the stand-in for cuDNN begin with: a handle on the stream of Planted.
#pragma once

#include <cudnn.h>

#include "cuda/interpreter/planted.hpp"

namespace lockstep::ptx {

class CudnnPlanted : public Planted {
 protected:
  void SetUp() override {
    Planted::SetUp();
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetStream(handle_, stream_), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cudnnDestroy(handle_), CUDNN_STATUS_SUCCESS);
    Planted::TearDown();
  }

  cudnnHandle_t handle_ = nullptr;
};

}  // namespace lockstep::ptx
