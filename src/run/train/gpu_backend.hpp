// GpuBackend: keeps gradients, model and, if they fit, the data on the rank's GPU.
#pragma once

#include <vector>

#include "run/train/backend.hpp"
#include "step/exec/gpu_device.hpp"

namespace lockstep::train {

class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(exec::GpuSetup setup) : device_(std::move(setup)) {}

  const exec::GpuDevice& device() const override { return device_; }
  /// Starts NCCL if there are several ranks.
  ReduceAndUpdate make_step(const RunContext& run, Communicator& ranks, const optim::UpdaterSetup& setup,
                            const comm::GradientBuckets& buckets, const comm::ReducerOptions& options,
                            exec::WorkerPool& pool) const override;
  PlacedData place_data(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                        const RunMemory& memory) const override;
  void emit_devices(const RunContext& run) const override;

 private:
  std::vector<exec::MemoryNeed> needs(const Graph& graph, const RunMemory& memory) const;

  exec::GpuDevice device_;
};

}  // namespace lockstep::train
