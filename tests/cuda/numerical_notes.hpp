// What cuDNN itself notes of the numbers of a plan that was chosen.
#pragma once

#include <string>

#include "device/cuda/cudnn_plan.hpp"

namespace lockstep::device {

/// Those that the module must not take, one after the other; empty: none. `tensor_cores`: whether it may take them.
[[nodiscard]] std::string unwanted_notes(const CudnnPlan& plan, bool tensor_cores);

}  // namespace lockstep::device
