// OpenedJob: a job with its data open and its graph made, and what memory it needs: what `check` and `plan` start from.
#pragma once

#include <cstdint>

#include "data/input/prepared_data.hpp"
#include "lockstep/trainer.hpp"
#include "run/plan/memory.hpp"
#include "step/exec/cpu_device.hpp"

namespace lockstep::cli {

class OpenedJob {
 public:
  /// Opens the data on `ranks` ranks' behalf. `on_gpus`: memory is that of GPUs. Throws as training would.
  OpenedJob(const Registries& registries, const JobFile& job, int ranks, bool on_gpus);
  /// With data that are open already, or have no samples: then memory is without what is kept of them.
  OpenedJob(const Registries& registries, JobFile job, input::PreparedData data, int ranks, bool on_gpus);
  OpenedJob(const OpenedJob&) = delete;
  OpenedJob& operator=(const OpenedJob&) = delete;
  ~OpenedJob() = default;

  const JobFile& job() const { return job_; }
  const input::PreparedData& data() const { return data_; }
  const Graph& graph() const { return graph_; }      ///< as the job says it
  const Graph& lowered() const { return lowered_; }  ///< as this machine's CPU computes it
  [[nodiscard]] exec::CpuDevice& device() { return device_; }
  const plan::ModelSetup& model() const { return model_; }
  const plan::MemorySetup& memory() const { return memory_; }

 private:
  const JobFile job_;
  exec::CpuDevice device_;
  const input::PreparedData data_;
  const Graph graph_, lowered_;
  const std::int64_t resident_;  ///< of this process with all that, before kernels are made
  const plan::ModelSetup model_;
  const plan::MemorySetup memory_;
};

}  // namespace lockstep::cli
