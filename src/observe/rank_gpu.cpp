#include "observe/rank_gpu.hpp"

#include <cstdlib>

namespace lockstep::observe {

namespace {

constexpr const char* kNvml = "libnvidia-ml.so.1";  // comes with the driver

std::string library_named() {
  const char* given = std::getenv("LOCKSTEP_NVML");
  return given == nullptr ? "" : given;
}

}  // namespace

RankGpu rank_gpu(const RankContext& run) {
  const std::string named = library_named();
  if (named.empty() && !run.device.is_gpu()) return {};
  const auto& communicator = run.communicator;
  RankGpu gpu;
  gpu.device = run.device.is_gpu() ? run.device.gpu.pci_bus
                                   : std::to_string(communicator.topology().local_rank(communicator.rank()));
  gpu.library = telemetry::nvml::Library::load(named.empty() ? kNvml : named, gpu.problem);
  if (gpu.library && find_gpu(*gpu.library, gpu.device, gpu.problem) == nullptr) gpu.library.reset();
  return gpu;
}

std::string driver_version() {
  const std::string named = library_named();
  std::string problem;
  const auto library = telemetry::nvml::Library::load(named.empty() ? kNvml : named, problem);
  return library ? telemetry::nvml::driver_version(*library) : "";
}

}  // namespace lockstep::observe
