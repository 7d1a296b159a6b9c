// Counts the rare events of a run (checkpoints, evaluations, moves of shares) in its metrics, and hands them on. On
// rank 0, by the training thread.
#pragma once

#include "lockstep/events.hpp"
#include "telemetry/rank_metrics.hpp"

namespace lockstep::observe {

class MetricsEvents final : public events::Sink {
 public:
  /// `next` may be null.
  MetricsEvents(telemetry::RankMetrics& metrics, events::Sink* next) : metrics_(metrics), next_(next) {}
  void event(const events::Event& event) override;

 private:
  void on_checkpoint(const events::Checkpoint& checkpoint);
  void on_evaluation(const events::Evaluation& evaluation);

  telemetry::RankMetrics& metrics_;
  events::Sink* next_;
};

}  // namespace lockstep::observe
