// What a rank's main thread is doing, reported at once to all observers: the phases of the final report, the flight
// recorder, the timeline and the metrics.
//
//   StepScope step(observers, number);
//   {
//     const PhaseScope phase = step.enter(StepPhase::compute);
//     ...
//   }
//   step.seconds(StepPhase::compute)
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/flight_recorder.hpp"
#include "core/spans.hpp"
#include "core/trace.hpp"
#include "observe/run_metrics.hpp"

namespace lockstep::observe {

enum class StepPhase : std::uint8_t { compute, reduce, update, evaluate, checkpoint };
inline constexpr std::size_t kStepPhases = 5;

/// The observers of phases. All but `phases` may be null.
struct PhaseObservers {
  Phases& phases;
  FlightRecorder* recorder = nullptr;
  TraceRecorder* trace = nullptr;
  RunMetrics* metrics = nullptr;
};

/// The main thread is in this phase during the object's lifetime.
class PhaseScope {
 public:
  /// `step`: the optimizer step that it is part of, from 0. `seconds`: receives the phase's duration at its end; may be
  /// null.
  PhaseScope(const PhaseObservers& to, StepPhase phase, std::uint64_t step, double* seconds = nullptr);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

  /// Seconds so far.
  double seconds() const { return seconds_since(start_); }

 private:
  Clock::time_point start_ = Clock::now();
  const StepPhase phase_;
  RunMetrics* metrics_;
  double* seconds_;
  PhaseTimer timer_;
  std::optional<ActivityScope> activity_;
  TraceScope span_;
};

/// One optimizer step.
class StepScope {
 public:
  /// `step`: from 0.
  StepScope(const PhaseObservers& to, std::uint64_t step);
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;
  ~StepScope() = default;

  [[nodiscard]] PhaseScope enter(StepPhase phase) {
    return PhaseScope(to_, phase, step_, &seconds_.at(static_cast<std::size_t>(phase)));
  }
  std::uint64_t number() const { return step_; }
  /// Seconds since the step began.
  double seconds() const { return seconds_since(start_); }
  /// Duration of a phase that has ended.
  double seconds(StepPhase phase) const { return seconds_.at(static_cast<std::size_t>(phase)); }

 private:
  PhaseObservers to_;
  std::uint64_t step_;
  Clock::time_point start_ = Clock::now();
  std::array<double, kStepPhases> seconds_{};
  TraceRange range_;
};

}  // namespace lockstep::observe
