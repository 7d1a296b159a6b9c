// What a shard took in earlier runs, as a Prometheus server remembers it (`balance: {prometheus: URL}`): the first
// shares of a run are chosen by it.
#pragma once

#include <string>
#include <vector>

#include "balance/weights.hpp"
#include "telemetry/prometheus_query.hpp"

namespace lockstep::train {

struct EarlierSpeeds {
  std::vector<double> seconds_per_shard;  ///< by rank; 0: not known
  std::string evidence;  ///< "by host and device for ranks 0 1, by device for rank 2"; empty: nothing is known
  [[nodiscard]] bool complete() const;
};

/// The mean over the last 30 days' runs of shards that are the same work (`workload`: workload_of()), by host and
/// device.
[[nodiscard]] std::string earlier_runs_query(const std::string& workload);

/// A rank's seconds are those of its device on its host, else the mean of its device on all hosts.
[[nodiscard]] EarlierSpeeds earlier_speeds(const std::vector<telemetry::PrometheusSample>& samples,
                                           const std::vector<balance::RankPlace>& ranks);

}  // namespace lockstep::train
