// Curves of a run's events, by step.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cli/svg_chart.hpp"

namespace lockstep::cli {

/// A curve of `value` of each event. Runs of other versions may lack the field: the curve is then empty.
template <class Event, class Value>
Series event_series(const std::string& name, const std::vector<Event>& events, Value value) {
  Series series{name, {}};
  for (const Event& event : events) {
    const std::optional<double> y = value(event);
    if (y) series.points.emplace_back(static_cast<double>(event.step), *y);
  }
  const auto is_number = [](const auto& point) { return std::isfinite(point.second); };
  if (std::none_of(series.points.begin(), series.points.end(), is_number)) series.points.clear();
  return series;
}

}  // namespace lockstep::cli
