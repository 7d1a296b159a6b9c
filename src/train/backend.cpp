#include "train/backend.hpp"
#include "optim/cpu_updater.hpp"

namespace lockstep::train {

ReduceAndUpdate CpuBackend::make_step(const RunContext& /*run*/, Communicator& ranks, const optim::UpdaterSetup& setup,
                                      const comm::GradientBuckets& buckets, const comm::ReducerOptions& options,
                                      exec::WorkerPool& pool) const {
  auto reducer = device_.make_reducer(ranks, buckets, options);
  auto updater = std::make_unique<optim::CpuUpdater>(setup, *reducer, pool);
  return {std::move(reducer), std::move(updater)};
}

}  // namespace lockstep::train
