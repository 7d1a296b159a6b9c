#include "device/gpu/cuda_module.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "lockstep/error.hpp"
#include "lockstep/version.hpp"

namespace lockstep::device {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "liblockstep_cuda.so";

CudaModule refuse(CudaModule module, std::string problem) {
  module.library = {};
  module.problem = std::move(problem);
  return module;
}

}  // namespace

std::vector<std::string> module_paths() {
  if (const char* given = std::getenv("LOCKSTEP_CUDA_MODULE"); given != nullptr && *given != '\0') return {given};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path();
  return {folder / kFile, folder.parent_path() / "lib" / "lockstep" / kFile};
}

CudaModule open_module(const std::vector<std::string>& paths) {
  CudaModule module;
  const auto exists = [](const std::string& path) {
    std::error_code error;
    return fs::exists(path, error);
  };
  const auto found = std::find_if(paths.begin(), paths.end(), exists);
  if (found == paths.end()) {
    return refuse(module, fmt::format("expected the CUDA module, found none at {}; build lockstep with "
                                      "-D LOCKSTEP_CUDA=ON",
                                      fmt::join(paths, " or ")));
  }
  module.path = fs::absolute(*found);
  std::string why;
  module.library = SharedLibrary::open(module.path, why);
  if (!module) {
    return refuse(module, fmt::format("expected a CUDA module that loads, found: {}; install the libraries of CUDA, "
                                      "cuDNN and NCCL, or name their folder in LD_LIBRARY_PATH",
                                      why));
  }
  auto* const id = module.library.find<const char*()>(kModuleBuildId);
  auto* const version = module.library.find<int()>(kModuleCudaVersion);
  if (id == nullptr || version == nullptr) {
    return refuse(module, fmt::format("expected lockstep's CUDA module at {}, found another library", module.path));
  }
  if (std::string(id()) != build_id()) {
    return refuse(module, fmt::format("expected a CUDA module of this build ({}), found one of build {} at {}; build "
                                      "or install both together",
                                      build_id(), id(), module.path));
  }
  module.cuda_version = version();
  if (auto* const libraries = module.library.find<void(std::string&)>(kModuleLibraries)) libraries(module.libraries);
  return module;
}

std::shared_ptr<Gpu> make_gpu(const CudaModule& module, int ordinal, const GpuPlace& place) {
  auto* const make = module.library.find<Gpu*(int, const GpuPlace&)>(kModuleMakeGpu);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build makes GPUs");
  return std::shared_ptr<Gpu>(make(ordinal, place));
}

std::shared_ptr<GpuProfiler> make_profiler(const CudaModule& module) {
  auto* const make = module.library.find<GpuProfiler*()>(kModuleMakeProfiler);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build makes profilers");
  return std::shared_ptr<GpuProfiler>(make());
}

}  // namespace lockstep::device
