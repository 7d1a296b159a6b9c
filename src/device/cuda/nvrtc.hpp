// NVRTC, CUDA's runtime compiler. When a job starts, cuDNN uses it to compile kernels with fused operations.
#pragma once

#include <string>

namespace lockstep::device {

/// NVRTC searches its second half, libnvrtc-builtins, only in the system's paths and not beside itself; without it,
/// cuDNN would silently lack those kernels. So this opens the one beside the loaded NVRTC. Calling it again does
/// nothing. Throws as open_beside_nvrtc().
void open_nvrtc_builtins();

/// Opens a library of this name. Throws Error(configuration) if it is neither beside NVRTC nor in the system's paths.
void open_beside_nvrtc(const std::string& name);

}  // namespace lockstep::device
