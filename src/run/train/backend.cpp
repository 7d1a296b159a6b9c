#include "run/train/backend.hpp"
#include "run/train/device_choice.hpp"
#include "step/optim/cpu_updater.hpp"

namespace lockstep::train {

ReduceAndUpdate CpuBackend::make_step(const RunContext& /*run*/, Communicator& ranks, const optim::UpdaterSetup& setup,
                                      const comm::GradientBuckets& buckets, const comm::ReducerOptions& options,
                                      exec::WorkerPool& pool) const {
  auto reducer = device_.make_reducer(ranks, buckets, options);
  auto updater = std::make_unique<optim::CpuUpdater>(setup, *reducer, pool);
  return {std::move(reducer), std::move(updater)};
}

void CpuBackend::emit_devices(const RunContext& run) const {
  if (run.job.device != DeviceChoice::automatic || run.communicator.rank() != 0) return;
  const auto& host = run.communicator.topology().host_name(0);
  if (std::string idle = idle_gpus(device::ask_driver(), host); !idle.empty()) run.warn(std::move(idle));
}

}  // namespace lockstep::train
