// NVRTC, the compiler in a library. cuDNN makes kernels that fuse operations with it while a job starts.
#pragma once

#include <string>

namespace lockstep::device {

/// NVRTC looks for its second half, libnvrtc-builtins, where the system does and not beside itself; cuDNN would then
/// have no kernels for it, and say nothing. So it is opened here, from beside the NVRTC that is loaded. Calling it
/// again does nothing. Throws as open_beside_nvrtc().
void open_nvrtc_builtins();

/// A library of this name. Throws Error(configuration) where it is neither beside NVRTC nor where the system looks.
void open_beside_nvrtc(const std::string& name);

}  // namespace lockstep::device
