// What every part of a run is given: the job, the ranks, the registries, where events go, and what computes.
#pragma once

#include <chrono>
#include <string>

#include "exec/device.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::train {

/// The deadline of a wait for other ranks: `timeout` of the job.
[[nodiscard]] std::chrono::milliseconds timeout_of(const Job& job);

/// Cheap to copy; what it refers to outlives the run.
struct RunContext {
  const Job& job;
  Communicator& communicator;
  const Registries& registries;
  const TrainerOptions& options;
  const exec::Device& device;  ///< of this rank

  /// Rank 0 writes files and speaks.
  [[nodiscard]] bool leads() const { return communicator.rank() == 0; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_of(job); }
  /// Tells the sink, on rank 0.
  void emit(const std::string& name, const telemetry::Record& record) const;
};

}  // namespace lockstep::train
