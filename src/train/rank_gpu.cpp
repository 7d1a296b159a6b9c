#include "train/rank_gpu.hpp"

#include <cstdlib>

namespace lockstep::train {

namespace {

constexpr const char* kNvml = "libnvidia-ml.so.1";  // comes with the driver

}  // namespace

RankGpu rank_gpu(const RunContext& run) {
  const char* given = std::getenv("LOCKSTEP_NVML");
  const bool named = given != nullptr && *given != '\0';
  if (!named && !run.device.is_gpu()) return {};
  const auto& communicator = run.communicator;
  RankGpu gpu;
  gpu.device = run.device.is_gpu() ? run.device.gpu.pci_bus
                                   : std::to_string(communicator.topology().local_rank(communicator.rank()));
  gpu.library = telemetry::nvml::Library::load(named ? given : kNvml, gpu.problem);
  if (gpu.library && find_gpu(*gpu.library, gpu.device, gpu.problem) == nullptr) gpu.library.reset();
  return gpu;
}

}  // namespace lockstep::train
