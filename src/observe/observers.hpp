// Observers: everything that observes a run on one rank without influencing it: metrics, TensorBoard, the timeline, the
// flight recorder, the rank's GPU. The loop reports to all of them at once, through StepScope.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/flight_recorder.hpp"
#include "core/spans.hpp"
#include "core/trace.hpp"
#include "lockstep/communicator.hpp"
#include "observe/board.hpp"
#include "observe/rank_context.hpp"
#include "observe/rank_gpu.hpp"
#include "observe/run_metrics.hpp"
#include "observe/telemetry/gpu_sample.hpp"
#include "observe/tracing.hpp"
#include "observe/trainer_status.hpp"

namespace lockstep::observe {

// What a rank's main thread is doing, reported at once to all observers: the phases of the final report, the flight
// recorder, the timeline and the metrics.
//
//   StepScope step(observers, number);
//   {
//     const PhaseScope phase = step.enter(StepPhase::compute);
//     ...
//   }
//   step.seconds(StepPhase::compute)

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

class Observers {
 public:
  /// Observers that take events add themselves to `run.sinks`. Warns if the rank's GPU cannot be queried.
  Observers(const RankContext& run, const ProfileSteps& profile);
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;
  ~Observers() = default;

  /// Collective, just before training. `loader`, `data` and `graph` must outlive this object.
  void start(const RunFacts& facts, const data::Loader& loader, const input::PreparedData& data, const Graph& graph);
  /// Collective, after the start event. `kernels`: number of kernels of a micro-batch, forward and backward.
  void start_tracing(std::int64_t steps_done, std::size_t kernels) { tracing_.start(steps_done, kernels); }

  /// Selects the recorder of the next step's spans. Returns whether it has changed.
  [[nodiscard]] bool select_trace(std::int64_t steps_done);
  /// Null if this step is not traced.
  const std::shared_ptr<TraceRecorder>& trace() const { return trace_; }

  [[nodiscard]] StepScope step(std::int64_t steps_done) {
    return StepScope(phase_observers(), static_cast<std::uint64_t>(steps_done));
  }
  /// For evaluation and checkpoints, which are outside a step but belong to the one before them.
  [[nodiscard]] PhaseScope enter(StepPhase phase, std::int64_t steps_done) {
    return PhaseScope(phase_observers(), phase, static_cast<std::uint64_t>(std::max<std::int64_t>(1, steps_done) - 1));
  }

  void step_done(const StepReport& report, const exec::StepSums& sums) {
    if (metrics_) metrics_->step_done(report, sums);
  }
  void loss_is_not_finite() {
    if (metrics_) metrics_->loss_is_not_finite();
  }
  /// Call after each step: writes the timeline after the last traced step.
  void trace_step_done(std::int64_t steps_done) { tracing_.step_done(steps_done); }
  void finish_tracing() { tracing_.finish(); }
  /// The run has ended normally.
  void ended() {
    if (metrics_) metrics_->ended();
  }

  /// Null if this rank has no TensorBoard.
  Board* board() const { return board_.get(); }
  /// What slowed this rank's GPU down when it was last sampled.
  telemetry::GpuCause gpu_cause() const { return metrics_ ? metrics_->gpu_cause() : telemetry::GpuCause::none; }
  /// Joules that this rank's GPU has used since the start; none if it has no counter.
  [[nodiscard]] std::optional<double> energy() { return energy_ ? std::optional(energy_->joules()) : std::nullopt; }
  const Phases& phases() const { return phases_; }

 private:
  [[nodiscard]] PhaseObservers phase_observers() {
    return {.phases = phases_, .recorder = recorder_.get(), .trace = trace_.get(), .metrics = metrics_.get()};
  }

  RankContext run_;
  Phases phases_;
  std::shared_ptr<FlightRecorder> recorder_;  ///< may be null
  Tracing tracing_;
  std::shared_ptr<TraceRecorder> trace_;
  RankGpu gpu_;
  std::unique_ptr<telemetry::GpuEnergy> energy_;  ///< null: not measured
  std::unique_ptr<Board> board_;
  std::unique_ptr<TrainerStatus> trainer_status_;  ///< null: nobody asks for it
  std::unique_ptr<RunMetrics> metrics_;  ///< null if the job wants none; last, since its threads use the members above
};

/// Writes the ranks' flight recorders. Does nothing if there is a single rank, or no recorder.
void write_flight(const std::string& run_directory, Communicator& communicator);

}  // namespace lockstep::observe
