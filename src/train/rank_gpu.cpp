#include "train/rank_gpu.hpp"

#include <cstdlib>

namespace lockstep::train {

RankGpu rank_gpu(const RunContext& run) {
  const char* named = std::getenv("LOCKSTEP_NVML");
  if (named == nullptr || *named == '\0') return {};
  RankGpu gpu;
  gpu.device = std::to_string(run.communicator.topology().local_rank(run.communicator.rank()));
  gpu.library = telemetry::nvml::Library::load(named, gpu.problem);
  return gpu;
}

}  // namespace lockstep::train
