// CudnnTarget: whose plans cuDNN makes.
#pragma once

#include <cudnn.h>

#include <memory>

namespace cudnn_frontend {
class DeviceProperties;
}

namespace lockstep::device {

class CudnnPlans;

/// The GPU that the handle is on, or one that is described and need not be there.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  std::shared_ptr<const cudnn_frontend::DeviceProperties> described;
  int architecture = 0;        ///< of the described one: 90 for compute capability 9.0
  CudnnPlans* made = nullptr;  ///< where plans are kept, of the GPU; null: nowhere
};

}  // namespace lockstep::device
