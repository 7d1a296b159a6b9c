// What every observer of a run on one rank is given: the job, the ranks, the device, and where events go.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/communicator.hpp"
#include "lockstep/events.hpp"
#include "lockstep/job.hpp"
#include "step/exec/device.hpp"

namespace lockstep::observe {

/// Cheap to copy; what it refers to must outlive the run.
struct RankContext {
  const JobFile& job;
  const CanonicalJob& canonical;  ///< of the same job
  Communicator& communicator;
  const exec::Device& device;         ///< of this rank
  std::vector<events::Sink*>& sinks;  ///< receive rank 0's events; observers add themselves

  /// Rank 0 writes files and emits events.
  bool leads() const { return communicator.rank() == 0; }
  std::chrono::milliseconds timeout() const { return job.timeout(); }
  /// Passes an event to the sinks, on rank 0.
  void emit(const events::Event& event) const {
    if (!leads()) return;
    for (events::Sink* const sink : sinks) sink->event(event);
  }
  void warn(std::string message) const { emit(events::Warning{std::move(message)}); }
};

}  // namespace lockstep::observe
