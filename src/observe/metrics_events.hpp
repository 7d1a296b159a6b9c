// Counts a run's rare events (checkpoints, evaluations, moves of micro-batches) in its metrics. On rank 0, by the
// training thread.
#pragma once

#include "lockstep/events.hpp"
#include "observe/telemetry/rank_metrics.hpp"

namespace lockstep::observe {

class MetricsEvents final : public events::Sink {
 public:
  explicit MetricsEvents(telemetry::RankMetrics& metrics) : metrics_(metrics) {}
  void event(const events::Event& event) override;

 private:
  void on_checkpoint(const events::Checkpoint& checkpoint);
  void on_evaluation(const events::Evaluation& evaluation);

  telemetry::RankMetrics& metrics_;
};

}  // namespace lockstep::observe
