// Observers: all that watches a run on one rank and changes none of it: metrics, TensorBoard, the timeline, the flight
// recorder, the rank's GPU. The loop reports to it through StepScope, once.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/communicator.hpp"
#include "observe/board.hpp"
#include "observe/rank_context.hpp"
#include "observe/rank_gpu.hpp"
#include "observe/run_metrics.hpp"
#include "observe/step_scope.hpp"
#include "observe/tracing.hpp"
#include "telemetry/gpu_sample.hpp"

namespace lockstep::observe {

class Observers {
 public:
  /// Those that take events add themselves to `run.sinks`. Warns where the rank's GPU cannot be asked.
  Observers(const RankContext& run, const ProfileSteps& profile);
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;
  ~Observers() = default;

  /// When the run is about to train; every rank calls it. `loader`, `data` and `graph` outlive this.
  void start(const RunFacts& facts, const data::Loader& loader, const input::PreparedData& data, const Graph& graph);
  /// After the start event; every rank calls it. `kernels`: of a shard, forward and backward.
  void start_tracing(std::int64_t steps_done, std::size_t kernels) { tracing_.start(steps_done, kernels); }

  /// Chooses where spans go from here on. Returns whether that is another recorder than before.
  [[nodiscard]] bool select_trace(std::int64_t steps_done);
  /// Null: this step is not traced.
  [[nodiscard]] const std::shared_ptr<TraceRecorder>& trace() const { return trace_; }

  [[nodiscard]] StepScope step(std::int64_t steps_done) {
    return StepScope(phase_observers(), static_cast<std::uint64_t>(steps_done));
  }
  /// Beside the steps: evaluation and checkpoints, which belong to the step before them.
  [[nodiscard]] PhaseScope enter(StepPhase phase, std::int64_t steps_done) {
    return PhaseScope(phase_observers(), phase, static_cast<std::uint64_t>(std::max<std::int64_t>(1, steps_done) - 1));
  }

  void step_done(const StepReport& report, const exec::StepSums& sums) {
    if (metrics_) metrics_->step_done(report, sums);
  }
  void loss_is_not_finite() {
    if (metrics_) metrics_->loss_is_not_finite();
  }
  /// After each step: writes the timeline when its last step is done.
  void trace_step_done(std::int64_t steps_done) { tracing_.step_done(steps_done); }
  void finish_tracing() { tracing_.finish(); }
  /// The run has come to its end in order.
  void ended() {
    if (metrics_) metrics_->ended();
  }

  /// Null: no TensorBoard on this rank.
  [[nodiscard]] Board* board() const { return board_.get(); }
  /// What this rank's GPU was slowed by when it was looked at last.
  [[nodiscard]] telemetry::GpuCause gpu_cause() const {
    return metrics_ ? metrics_->gpu_cause() : telemetry::GpuCause::none;
  }
  /// Joules that this rank's GPU has drawn since the start; none where it has no counter.
  [[nodiscard]] std::optional<double> energy() { return energy_ ? std::optional(energy_->joules()) : std::nullopt; }
  [[nodiscard]] const Phases& phases() const { return phases_; }

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
  std::unique_ptr<RunMetrics> metrics_;  ///< null where nobody asked; last, since its threads read the above
};

/// What the rank was in. Writes nothing where there is one rank alone, and no recorder.
void write_flight(const std::string& run_directory, Communicator& communicator);

}  // namespace lockstep::observe
