// cuDNN's own notes about the numerics of a chosen plan.
#pragma once

#include <string>

#include "device/cuda/cudnn_plan.hpp"

namespace lockstep::device {

/// The notes that the module must not accept, joined; empty: none. `tensor_cores`: whether tensor cores are allowed.
[[nodiscard]] std::string unwanted_notes(const CudnnPlan& plan, bool tensor_cores);

}  // namespace lockstep::device
