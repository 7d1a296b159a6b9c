// The CUDA module: liblockstep_cuda.so, the only part of lockstep that links CUDA's libraries. It is opened at run time
// by its absolute path, and only if it comes from the same build as the program (see docs/design/gpu.md for the
// reasons).
//
// Rooms look up their functions in it by the `extern "C"` names below.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/shared_library.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_place.hpp"
#include "device/gpu/gpu_profiler.hpp"

namespace lockstep::device {

/// What every module exports, besides the functions that rooms look up.
inline constexpr const char* kModuleBuildId = "lockstep_cuda_build_id";     ///< const char*()
inline constexpr const char* kModuleCudaVersion = "lockstep_cuda_version";  ///< int(): 13000 is CUDA 13.0
inline constexpr const char* kModuleLibraries =
    "lockstep_cuda_libraries";                                           ///< void(std::string&): CudaModule::libraries
inline constexpr const char* kModuleMakeGpu = "lockstep_cuda_make_gpu";  ///< Gpu*(int ordinal, const GpuPlace&)
inline constexpr const char* kModuleMakeProfiler = "lockstep_cuda_make_profiler";  ///< GpuProfiler*()
inline constexpr const char* kModuleRegisterKernels = "lockstep_cuda_register";    ///< void(OpRegistry&)

/// Where a module may be: beside the program, or where `cmake --install` puts it; LOCKSTEP_CUDA_MODULE names another.
[[nodiscard]] std::vector<std::string> module_paths();

struct CudaModule {
  SharedLibrary library;  ///< empty: see `problem`
  std::string path;
  int cuda_version = 0;   ///< CUDA version that it was built with
  std::string libraries;  ///< what the bits depend on: "CUDA runtime 13000, cuBLASLt 130100, cuDNN 91400"
  std::string problem;    ///< "expected ..., found ...; what to try"

  explicit operator bool() const { return static_cast<bool>(library); }
};

/// Does not throw. Opens the first file of `paths` that exists.
[[nodiscard]] CudaModule open_module(const std::vector<std::string>& paths = module_paths());

/// The driver's GPU with this number. Throws Error(infrastructure) if CUDA cannot use it.
[[nodiscard]] std::shared_ptr<Gpu> make_gpu(const CudaModule& module, int ordinal, const GpuPlace& place);

/// Nothing is loaded or recorded before it is started.
[[nodiscard]] std::shared_ptr<GpuProfiler> make_profiler(const CudaModule& module);

}  // namespace lockstep::device
