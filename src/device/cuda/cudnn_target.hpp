// CudnnTarget: the GPU that cuDNN makes plans for.
#pragma once

#include <cudnn.h>

#include <memory>

namespace cudnn_frontend {
class DeviceProperties;
}

namespace lockstep::device {

class CudnnPlans;

/// The GPU of the handle, or one that is only described and need not be present.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  std::shared_ptr<const cudnn_frontend::DeviceProperties> described;
  int architecture = 0;        ///< of the described GPU: 90 for compute capability 9.0
  CudnnPlans* made = nullptr;  ///< the GPU's store of plans; null: plans are not shared
};

}  // namespace lockstep::device
