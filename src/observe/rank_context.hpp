// What all that watches a run on one rank is given: the job, the ranks, what computes, and where events go.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "exec/device.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/events.hpp"
#include "lockstep/job.hpp"

namespace lockstep::observe {

/// Cheap to copy; what it refers to outlives the run.
struct RankContext {
  const Job& job;
  Communicator& communicator;
  const exec::Device& device;  ///< of this rank
  events::Sink* const& sink;   ///< gets the events of rank 0; may be null, and another while the run is set up

  /// Rank 0 writes files and emits events.
  [[nodiscard]] bool leads() const { return communicator.rank() == 0; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return job.timeout(); }
  /// Passes an event to the sink, on rank 0.
  void emit(const events::Event& event) const {
    if (leads() && sink != nullptr) sink->event(event);
  }
  void warn(std::string message) const { emit(events::Warning{std::move(message)}); }
};

}  // namespace lockstep::observe
