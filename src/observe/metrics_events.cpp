#include "observe/metrics_events.hpp"

#include "observe/telemetry/unix_time.hpp"

namespace lockstep::observe {

using telemetry::Metric;
using telemetry::unix_time;

void MetricsEvents::event(const events::Event& event) {
  if (const auto* checkpoint = std::get_if<events::Checkpoint>(&event)) on_checkpoint(*checkpoint);
  if (const auto* evaluation = std::get_if<events::Evaluation>(&event)) on_evaluation(*evaluation);
  if (std::holds_alternative<events::BadSample>(event)) metrics_.add(Metric::bad_samples, 1);
  if (const auto* balance = std::get_if<events::Balance>(&event)) {
    metrics_.add(Metric::balancer_moves, 1);
    metrics_.add(Metric::balancer_micro_batches_moved, static_cast<double>(balance->micro_batches_moved));
  }
}

void MetricsEvents::on_checkpoint(const events::Checkpoint& checkpoint) {
  metrics_.add(Metric::checkpoints, 1);
  metrics_.add(Metric::checkpoint_seconds, checkpoint.seconds);
  metrics_.add(Metric::checkpoint_blocked, checkpoint.blocked_seconds);
  metrics_.set(Metric::checkpoint_last_seconds, checkpoint.seconds);
  metrics_.set(Metric::checkpoint_bytes, static_cast<double>(checkpoint.bytes));
  metrics_.set(Metric::checkpoint_step, static_cast<double>(checkpoint.step));
  metrics_.set(Metric::checkpoint_time, unix_time());
}

void MetricsEvents::on_evaluation(const events::Evaluation& evaluation) {
  metrics_.add(Metric::evaluations, 1);
  metrics_.set(Metric::validation_loss, evaluation.loss);
  const auto& info = telemetry::info_of(Metric::validation_metric);
  for (std::size_t i = 0; i < telemetry::slots_of(info); ++i) {
    const auto found = evaluation.metrics.find(metrics_.series_name(info, i));
    if (found != evaluation.metrics.end()) metrics_.set(Metric::validation_metric, found->second, i);
  }
}

}  // namespace lockstep::observe
