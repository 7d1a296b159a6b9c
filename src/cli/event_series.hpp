// Curves of a run's events, by step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/svg_chart.hpp"
#include "lockstep/events.hpp"

namespace lockstep::cli {

/// "loss", or a metric by its name; nullopt if the evaluation has none of this name.
inline std::optional<double> value_of_evaluation(const events::Evaluation& eval, const std::string& metric) {
  if (metric == "loss") return eval.loss;
  const auto found = eval.metrics.find(metric);
  return found == eval.metrics.end() ? std::nullopt : std::optional(found->second);
}

/// A curve of `value` of each event. Runs of other versions may lack the field: the curve is then empty.
template <class Event, class Value>
Series event_series(const std::string& name, const std::vector<Event>& events, Value value) {
  Series series{name, {}};
  for (const Event& event : events) {
    const std::optional<double> y = value(event);
    if (y) series.points.emplace_back(static_cast<double>(event.step), *y);
  }
  return series;
}

}  // namespace lockstep::cli
