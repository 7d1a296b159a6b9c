// Speeds of ranks that a run knows without a probe: those of the checkpoint that it resumes from, those of earlier runs
// that a Prometheus server remembers (`balance: {prometheus: URL}`), and what the job says (`balance: {weights: ...}`).
#pragma once

#include <string>
#include <vector>

#include "balance/record.hpp"
#include "balance/weights.hpp"
#include "lockstep/graph.hpp"
#include "telemetry/prometheus_query.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

/// balance.json in the run directory: the speeds of the ranks when the newest checkpoint was written. It only speeds up
/// the start of a resumed run; one that is missing, damaged or of other ranks is as good as none.
void write_balance_record(const std::string& run_directory, const balance::Record& record);
[[nodiscard]] balance::Record read_balance_record(const std::string& run_directory);

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
                                           const std::vector<balance::RankHost>& ranks);

struct KnownSpeeds {
  std::vector<double> seconds_per_shard;  ///< by rank; empty: they are not known
  std::string evidence;                   ///< where they are from
  std::string warning;                    ///< about a Prometheus server that did not know them; else empty
};

/// `record` of these hosts (by rank) and workers, or what the server at `prometheus` (may be empty) answers. `hosts`:
/// of the ranks; read only if there is a server to ask.
[[nodiscard]] KnownSpeeds known_speeds(const balance::Record& record, const std::vector<std::string>& hosts,
                                       const std::vector<int>& workers, const std::string& prometheus,
                                       const std::string& workload, const std::vector<balance::RankHost>& ranks);

/// Where each rank runs. Every rank calls it.
[[nodiscard]] std::vector<balance::RankHost> hosts_of_ranks(const RunContext& run);

/// Speeds by which the model is cut, by rank and in any unit: the job's weights, or those of earlier runs of the same
/// graph, as a Prometheus server remembers them; else equal. Every rank calls it and gets the same.
[[nodiscard]] std::vector<double> speeds_of_ranks(const RunContext& run, const Graph& graph);

}  // namespace lockstep::train
