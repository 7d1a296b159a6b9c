// RunMetrics: the metrics that a rank exports to Prometheus, if the job asks for it (`telemetry: {prometheus: ...}`).
//
// The training loop calls step_done() once a step: plain stores, see observe/telemetry/rank_metrics.hpp. Rare things
// (moves, checkpoints, evaluations) arrive as events. Rank 0 writes into the run directory:
//
//   metrics/targets.json  where the ranks are scraped, for `file_sd_configs`; [] after a normal end. Until then, the
//                         same is in the job's folder for targets, if it names one
//   metrics/final.prom    the job's last numbers, for the textfile collector
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/flight_recorder.hpp"
#include "core/spans.hpp"
#include "data/loader.hpp"
#include "lockstep/events.hpp"
#include "lockstep/graph.hpp"
#include "observe/goodput.hpp"
#include "observe/rank_context.hpp"
#include "observe/rank_gpu.hpp"
#include "observe/shared_targets.hpp"
#include "observe/telemetry/exporter.hpp"
#include "observe/telemetry/gpu_sample.hpp"
#include "observe/telemetry/gpu_watch.hpp"
#include "observe/telemetry/rank_metrics.hpp"
#include "step/balance/measure.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::observe {

// Counts a run's rare events (checkpoints, evaluations, moves of micro-batches) in its metrics. On rank 0, by the
// training thread.

class MetricsEvents final : public events::Sink {
 public:
  explicit MetricsEvents(telemetry::RankMetrics& metrics) : metrics_(metrics) {}
  void event(const events::Event& event) override;

 private:
  void on_checkpoint(const events::Checkpoint& checkpoint);
  void on_evaluation(const events::Evaluation& evaluation);

  telemetry::RankMetrics& metrics_;
};

/// What stays constant during a run.
struct RunFacts {
  const Graph& graph;                             ///< of this rank's part
  const std::map<std::string, double>& restarts;  ///< restarts of the launch that the run belongs to, by reason
  std::string exactness;
  std::int64_t first_step = 0, steps = 0, steps_per_epoch = 1;
  std::int64_t checkpoint_every = 0;  ///< steps; 0: never
  int workers = 1;
  int part = 0;
};

/// Seconds of a step, by the main thread's clock, and its results.
struct StepReport {
  std::int64_t step = 0;  ///< steps done, including this one
  double seconds = 0, compute = 0, reduce = 0, update = 0;
  double loss = 0, learning_rate = 0;
  std::optional<double> gradient_norm;                       ///< none: it was not computed
  double loss_scale = 0;                                     ///< 0: the precision is not fp16
  bool skipped = false;                                      ///< whether the update was skipped
  std::size_t micro_batches = 0;                             ///< computed by this rank
  std::size_t next_micro_batches = 0;                        ///< of the next step
  std::uint64_t shared_memory_bytes = 0, network_bytes = 0;  ///< sent since the start
  std::int64_t checkpoint_failures = 0;
  exec::MicroBatchTimes workers;  ///< since the start
};

class RunMetrics {
 public:
  /// Null if the job wants no metrics.
  [[nodiscard]] static std::unique_ptr<RunMetrics> make(const RankContext& run);
  ~RunMetrics();
  RunMetrics(const RunMetrics&) = delete;
  RunMetrics& operator=(const RunMetrics&) = delete;

  /// Counts the run's rare events: checkpoints, evaluations, moves of micro-batches.
  [[nodiscard]] events::Sink& events() { return events_; }

  /// Collective, just before training: starts serving, and rank 0 writes where. `loader` and `bytes_read` are queried
  /// at each scrape. Throws Error(configuration) for an address that is not this host's.
  void serve(const RunFacts& facts, const RankGpu& gpu, const data::Loader& loader, std::function<double()> bytes_read);

  void step_done(const StepReport& report, const exec::StepSums& sums);
  /// The rank's current state, and time spent in it outside of steps.
  void set_state(telemetry::State state) { metrics_->set(state); }
  void add(telemetry::Phase phase, double seconds) { metrics_->add(phase, seconds); }
  void loss_is_not_finite() {
    if (run_.leads()) metrics_->add(telemetry::Metric::non_finite, 1, 0);
  }
  /// What slowed this rank's GPU down when it was last sampled.
  telemetry::GpuCause gpu_cause() const { return gpu_cause_; }
  /// The run has ended normally: the ranks need not be scraped any more.
  void ended();

 private:
  explicit RunMetrics(const RankContext& run);
  void begin_rank(const RunFacts& facts);
  void begin_job(const RunFacts& facts);
  void open_gpu(const RankGpu& gpu);
  void publish_ports();
  /// Returns why they could not be written, or "".
  [[nodiscard]] std::string write_targets(const std::string& json);
  void withdraw_targets();
  void sample(telemetry::RankMetrics& metrics);
  void look_at_gpu(telemetry::RankMetrics& metrics);
  /// `waited`: seconds of waiting for slower ranks.
  void add_phases(const StepReport& report, double waited);
  void add_workers(const StepReport& report, double waited);
  void add_compute(const StepReport& report);
  void set_job(const StepReport& report);
  void add_run_time(std::int64_t step);
  void note_run_time();
  telemetry::MetricLabels target_labels() const;
  std::string path(const char* name) const;
  std::string run_name() const;  ///< the last component of its directory

  RankContext run_;
  SharedTargets shared_targets_;
  std::shared_ptr<telemetry::RankMetrics> metrics_;
  MetricsEvents events_;
  Goodput goodput_;
  std::unique_ptr<telemetry::GpuSample> gpu_;
  telemetry::GpuWatch gpu_watch_;
  Clock::time_point looked_ = Clock::now();
  bool computes_on_gpu_ = false;
  double seconds_on_gpu_ = 0;  // at the last look
  std::atomic<telemetry::GpuCause> gpu_cause_{telemetry::GpuCause::none};
  const data::Loader* loader_ = nullptr;
  std::function<double()> bytes_read_;
  std::shared_ptr<FlightRecorder> recorder_;
  double flops_a_micro_batch_ = 0, peak_flops_ = 0, samples_a_micro_batch_ = 0;
  double period_steps_ = 0, steps_per_epoch_ = 1, workers_ = 1, steps_ = 0;
  std::vector<balance::RankMeasure> measures_;  ///< of the last step, by rank
  exec::MicroBatchTimes worker_times_;          ///< as of the previous step
  bool has_loss_ = true, counts_tokens_ = false, ended_ = false;
  Clock::time_point began_ = Clock::now();
  std::unique_ptr<telemetry::Exporter> exporter_;  ///< last, because its threads use the members above
};

}  // namespace lockstep::observe
