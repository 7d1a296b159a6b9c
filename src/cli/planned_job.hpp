// PlannedJob: a job in the form that the planner (run/plan) needs: its graph, what its kernels and its data need, and
// the times of its layers, either measured here or computed from rates.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/job_argument.hpp"
#include "cli/opened_job.hpp"
#include "config/cluster.hpp"
#include "lockstep/trainer.hpp"
#include "run/plan/measure.hpp"
#include "run/plan/search.hpp"

namespace lockstep::cli {

struct PlanOptions {
  JobArgument job;
  int ranks = 1;
  std::string memory;                      ///< memory of each rank in bytes; empty: the host's, divided by its ranks
  std::vector<std::string> profiles = {};  ///< paths, one for all ranks or one for each; empty: measured here
  std::string devices;                     ///< "8xH100"; empty: this machine's CPU
  std::string cluster = {};                ///< a cluster file; empty: all ranks are on one host
  std::string against;                     ///< a run directory; empty: none
  bool json = false;
};

class PlannedJob {
 public:
  /// Opens the data, and measures unless profiles or devices are given. Throws as training would.
  explicit PlannedJob(PlanOptions& options);
  PlannedJob(const PlannedJob&) = delete;
  PlannedJob& operator=(const PlannedJob&) = delete;
  ~PlannedJob() = default;

  const JobFile& job() const { return opened_.job(); }
  plan::SearchSetup search_setup() const;
  /// From now on, ranks compute these numbers of micro-batches, as in a run.
  void deal(std::vector<int> micro_batches) { ranks_.micro_batches = std::move(micro_batches); }
  /// From now on, ranks are equally fast where a model is cut and micro-batches are dealt.
  void forget_speeds() { ranks_.speeds.clear(); }
  /// The predicted step time of the whole job on one rank like the first of these.
  double seconds_of_one_rank() const;
  /// Where the times come from, one line each.
  const std::vector<std::string>& assumptions() const { return assumptions_; }
  int ranks() const { return ranks_.count(); }
  int threads() const { return ranks_.threads.front(); }
  /// The memory limit of the smallest rank.
  std::int64_t limit() const;

 private:
  void time_by_devices(const PlanOptions& options);
  void time_by_cluster();
  void time_by_profiles(const PlanOptions& options);
  void time_here();
  /// Deals parts and micro-batches as the job's `balance` says; by the devices' speeds if it is automatic.
  void apply_balance();
  void set_limits(const PlanOptions& options);

  const Registries registries_;
  const std::optional<ClusterFile> cluster_;
  OpenedJob opened_;
  const bool on_gpus_;
  plan::RankSetup ranks_;
  std::vector<std::string> host_names_;  ///< by host, as far as they are known
  std::vector<std::int64_t> limits_;
  std::vector<plan::Rates> rates_;                       ///< by kind of device
  std::vector<std::vector<plan::NodeSeconds>> seconds_;  ///< likewise
  std::unique_ptr<plan::TimeSetup> time_;
  std::vector<std::string> assumptions_;
};

}  // namespace lockstep::cli
