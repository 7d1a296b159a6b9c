#include "device/cuda/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <filesystem>

#include "core/shared_library.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

void open_nvrtc_builtins() {
  int major = 0, minor = 0;
  (void)nvrtcVersion(&major, &minor);
  open_beside_nvrtc(fmt::format("libnvrtc-builtins.so.{}.{}", major, minor));
}

void open_beside_nvrtc(const std::string& name) {
  Dl_info nvrtc{};
  std::string folder = ".";
  if (dladdr(reinterpret_cast<const void*>(&nvrtcVersion), &nvrtc) != 0) {
    folder = std::filesystem::path(nvrtc.dli_fname).parent_path().string();
  }
  std::string why;
  if (SharedLibrary::open(folder + "/" + name, why) || SharedLibrary::open(name, why)) return;
  throw Error(ExitCode::configuration, fmt::format("expected {} beside libnvrtc in {}, found: {}; install NVRTC whole: "
                                                   "cuDNN compiles kernels with it",
                                                   name, folder, why));
}

}  // namespace lockstep::device
