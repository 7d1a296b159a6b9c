#include "observe/metrics_events.hpp"

#include <cmath>

#include "telemetry/unix_time.hpp"

namespace lockstep::observe {

using telemetry::Metric;
using telemetry::unix_time;

void MetricsEvents::event(const std::string& name, const telemetry::Record& record) {
  if (name == "checkpoint") on_checkpoint(record);
  if (name == "eval") on_evaluation(record);
  if (name == "bad_sample") metrics_.add(Metric::bad_samples, 1);
  if (name == "balance") {
    metrics_.add(Metric::balancer_moves, 1);
    metrics_.add(Metric::balancer_shards_moved, telemetry::number(record, "shards_moved"));
  }
  if (next_ != nullptr) next_->event(name, record);
}

void MetricsEvents::on_checkpoint(const telemetry::Record& record) {
  const double seconds = telemetry::number(record, "seconds");
  metrics_.add(Metric::checkpoints, 1);
  metrics_.add(Metric::checkpoint_seconds, seconds);
  metrics_.add(Metric::checkpoint_blocked, telemetry::number(record, "blocked_seconds"));
  metrics_.set(Metric::checkpoint_last_seconds, seconds);
  metrics_.set(Metric::checkpoint_bytes, telemetry::number(record, "bytes"));
  metrics_.set(Metric::checkpoint_step, telemetry::number(record, "step"));
  metrics_.set(Metric::checkpoint_time, unix_time());
}

void MetricsEvents::on_evaluation(const telemetry::Record& record) {
  metrics_.add(Metric::evaluations, 1);
  metrics_.set(Metric::validation_loss, telemetry::number(record, "loss", std::nan("")));
  const telemetry::Field* field = telemetry::find(record, "metrics");
  const auto* values = field == nullptr ? nullptr : std::get_if<std::map<std::string, double>>(field);
  if (values == nullptr) return;
  const auto& info = telemetry::info_of(Metric::validation_metric);
  for (std::size_t i = 0; i < telemetry::slots_of(info); ++i) {
    const auto found = values->find(metrics_.series_name(info, i));
    if (found != values->end()) metrics_.set(Metric::validation_metric, found->second, i);
  }
}

}  // namespace lockstep::observe
