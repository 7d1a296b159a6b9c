// Speeds of ranks that a run knows without a probe: from the checkpoint that it resumes from, from metrics of earlier
// runs on a Prometheus server (`balance: {prometheus: URL}`), and from the job (`balance: {weights: ...}`).
#pragma once

#include <string>
#include <vector>

#include "lockstep/graph.hpp"
#include "observe/telemetry/prometheus_query.hpp"
#include "run/train/run_context.hpp"
#include "step/balance/record.hpp"
#include "step/balance/weights.hpp"

namespace lockstep::train {

/// balance.json in the run directory: the speeds of the ranks when the newest checkpoint was written. It only speeds up
/// the start of a resumed run; if it is missing, damaged or of other ranks, it is ignored.
void write_balance_record(const std::string& run_directory, const balance::Record& record);
[[nodiscard]] balance::Record read_balance_record(const std::string& run_directory);

struct EarlierSpeeds {
  std::vector<double> seconds_per_micro_batch;  ///< by rank; 0: not known
  std::string evidence;  ///< "by host and device for ranks 0 1, by device for rank 2"; empty: no speed is known
  bool complete() const;
};

/// Query for the mean seconds per micro-batch over the last 30 days' runs of the same work (`workload`: workload_of()),
/// by host and device.
[[nodiscard]] std::string earlier_runs_query(const std::string& workload);

/// Seconds per micro-batch for each rank: the mean of its device on its host, else of its device on all hosts.
[[nodiscard]] EarlierSpeeds earlier_speeds(const std::vector<telemetry::PrometheusSample>& samples,
                                           const std::vector<balance::RankHost>& ranks);

struct KnownSpeeds {
  std::vector<double> seconds_per_micro_batch;  ///< by rank; empty: not known
  std::string evidence;                         ///< where they come from
  std::string warning;                          ///< if the Prometheus server had none; else empty
};

/// From `record` if it is of these hosts (by rank) and workers, else from the server at `prometheus` (may be empty).
/// `hosts`: of the ranks; only used if there is a server to ask.
[[nodiscard]] KnownSpeeds known_speeds(const balance::Record& record, const std::vector<std::string>& hosts,
                                       const std::vector<int>& workers, const std::string& prometheus,
                                       const std::string& workload, const std::vector<balance::RankHost>& ranks);

/// Where each rank runs. Collective.
[[nodiscard]] std::vector<balance::RankHost> hosts_of_ranks(const RunContext& run);

/// Relative speeds by which the model is cut, by rank: from the job's weights, or from metrics of earlier runs of the
/// same graph on a Prometheus server; else equal. Collective, with the same result on every rank.
[[nodiscard]] std::vector<double> speeds_of_ranks(const RunContext& run, const Graph& graph);

}  // namespace lockstep::train
