// Counts the rare events of a run (checkpoints, evaluations, moves of shares) in its metrics, and hands them on. On
// rank 0, by the training thread.
#pragma once

#include "telemetry/rank_metrics.hpp"
#include "telemetry/sink.hpp"

namespace lockstep::observe {

class MetricsEvents final : public telemetry::Sink {
 public:
  /// `next` may be null.
  MetricsEvents(telemetry::RankMetrics& metrics, telemetry::Sink* next) : metrics_(metrics), next_(next) {}
  void event(const std::string& name, const telemetry::Record& record) override;

 private:
  void on_checkpoint(const telemetry::Record& record);
  void on_evaluation(const telemetry::Record& record);

  telemetry::RankMetrics& metrics_;
  telemetry::Sink* next_;
};

}  // namespace lockstep::observe
