// Where Prometheus finds the ranks of a run: a file for its `file_sd_configs`, which it rereads on changes.
#pragma once

#include <string>
#include <vector>

#include "telemetry/rank_metrics.hpp"

namespace lockstep::telemetry {

struct ScrapeTarget {
  std::string host;
  int port = 0;
};

/// JSON. `address`: what the ranks listen on; where that is all addresses, targets are named by their hosts. `labels`
/// are added to every series; `host` to those of each target.
[[nodiscard]] std::string targets_json(const std::vector<ScrapeTarget>& targets, const std::string& address,
                                       const MetricLabels& labels);

}  // namespace lockstep::telemetry
