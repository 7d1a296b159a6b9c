// Balancing: which rank computes which shards, on how many threads, and when that changes. Every rank has one; rank 0
// decides (src/balance) and broadcasts.
//
// A step: computed(), when its shards are; report() goes with the scalars of the step to all ranks; then decide(). What
// rank 0 decides after step t goes as a flag with the scalars of step t + 1; then the counts are broadcast, and they
// hold from step t + 2 on.
//
// Where the model is cut into parts, each part's shards are dealt among the ranks that have it, by their speeds for it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "balance/balancer.hpp"
#include "balance/record.hpp"
#include "balance/waiting.hpp"
#include "balance/weights.hpp"
#include "comm/reduce/shard_assignment.hpp"
#include "exec/executor.hpp"
#include "telemetry/gpu_watch.hpp"
#include "train/model_parts.hpp"
#include "train/run_context.hpp"
#include "train/step_flags.hpp"

namespace lockstep::train {

/// What a rank has measured of a step, beside the seconds of its shards.
struct StepMeasure {
  double reduce = 0;       ///< seconds after its last shard: waiting for other ranks, and the exposed all-reduce
  double last_update = 0;  ///< seconds, of the step before
  telemetry::GpuCause gpu = telemetry::GpuCause::none;  ///< what slows its GPU
  std::optional<double> joules = {};                    ///< that its GPU has drawn since the start; none: not measured
};

/// The same as all ranks get it.
struct BalanceReport {
  balance::MeasureValues values;
  std::uint32_t flags = 0;  ///< train/step_flags
};

class Balancing {
 public:
  /// An equal assignment, or one by the job's weights. Throws Error(configuration) for a weight that is no rank's.
  /// `parts` outlives it.
  Balancing(const RunContext& run, const ModelParts& parts);

  /// Of the ranks that have this rank's part of the model: all, where it is not cut.
  [[nodiscard]] const comm::ShardAssignment& assignment() const { return assignments_[own_part()]; }
  /// By part.
  [[nodiscard]] const std::vector<comm::ShardAssignment>& assignments() const { return assignments_; }
  [[nodiscard]] const std::vector<int>& own_shards() const;
  /// Threads that compute on this rank: `threads`, or its part of this host's cores, as far as there may be shards.
  [[nodiscard]] int workers() const { return workers_; }
  [[nodiscard]] const std::vector<int>& workers_of_ranks() const { return workers_of_ranks_; }

  /// No more shards than its device's memory can hold; none: its host's memory is asked.
  void limit(std::optional<int> max_shards) { max_shards_ = max_shards; }
  /// With `auto`: a better first assignment, from the record of a checkpoint of the same ranks, from earlier runs as a
  /// Prometheus server remembers them, or by trying some shards. `step`: done so far. Every rank calls it.
  /// `workload`: workload_of() of the graph.
  void start(exec::Executor& executor, const comm::GradientBuckets& buckets, const std::string& workload,
             const balance::Record& record, std::int64_t step);

  void computed(exec::Executor& executor, const comm::GradientBuckets& buckets);
  /// What this rank tells all others of the step.
  [[nodiscard]] BalanceReport report(const StepMeasure& step);
  /// Seconds that this rank has waited for input since the start: its workers' waits for a shard's inputs, added up and
  /// divided by the number of workers. Every figure of it that a run reports is this one (docs/observability.md).
  [[nodiscard]] double data_wait_seconds() const { return data_wait_; }
  /// Every rank calls it, with the sums of the step. `step`: done with this one; `seconds`: it took. Returns whether
  /// the assignment is another one from the next step on.
  bool decide(const exec::StepSums& sums, std::int64_t step, double seconds);

  /// Shards of each rank of an evaluation of `shards` in all (of each part), as those of training are chosen: by the
  /// current speeds, by weights, or equal. `before`: as they are, which stays where it is as good. `step`: done. Every
  /// rank calls it.
  [[nodiscard]] std::vector<int> evaluation_counts(int shards, std::vector<int> before, std::int64_t step) const;

  /// On rank 0.
  [[nodiscard]] balance::Record record() const;
  [[nodiscard]] const std::vector<balance::RankTimes>& times() const { return waiting_->times(); }
  /// Seconds a shard of each rank in the last step, by rank; ranks without one are not in it.
  [[nodiscard]] const events::ByRank& shard_seconds() const { return shard_seconds_; }
  /// Joules by rank since the start; of those that measure them.
  [[nodiscard]] const events::ByRank& energy() const { return energy_; }
  [[nodiscard]] int moves() const { return moves_; }

 private:
  struct RankFacts {
    double workers = 1, max_shards = 1, seconds_per_shard = 0;
  };
  [[nodiscard]] std::size_t own_part() const { return static_cast<std::size_t>(parts_.own()); }
  [[nodiscard]] std::vector<int> hosts_of_part(std::size_t part) const {
    return parts_.of_part(part, run_.communicator.topology().host_of);
  }
  [[nodiscard]] std::vector<comm::ShardAssignment> assign_shards() const;
  [[nodiscard]] bool is_automatic() const;
  [[nodiscard]] std::vector<std::string> hosts() const;
  [[nodiscard]] std::vector<int> first_counts();
  [[nodiscard]] std::vector<int> counts_by(const std::vector<double>& weights, int shards) const;
  /// Whose partial sums the host's memory can hold.
  [[nodiscard]] int max_host_shards(const comm::GradientBuckets& buckets) const;
  [[nodiscard]] double probe(exec::Executor& executor, const comm::GradientBuckets& buckets) const;
  void make_balancers(const std::vector<RankFacts>& facts);
  void begin(bool known, const std::vector<RankFacts>& facts);
  bool try_idle();
  void note_gpus(const std::vector<balance::RankMeasure>& ranks);
  void note(const std::vector<balance::RankMeasure>& ranks);
  /// Adds what one part's balancer has decided to what is going to be broadcast.
  void merge(std::size_t part, std::optional<balance::Decision> decision);
  void ask_balancers(const std::vector<balance::RankMeasure>& ranks, std::int64_t step, double seconds);
  void move(std::int64_t step);
  void emit(const balance::Decision& decision, int moved, std::int64_t step) const;

  RunContext run_;
  const ModelParts& parts_;
  std::vector<comm::ShardAssignment> assignments_;  // by part
  std::vector<int> counts_;                         // by rank
  std::vector<double> weights_;                     // of the job; empty: it has none
  int workers_ = 1;
  std::optional<int> max_shards_;
  std::vector<int> workers_of_ranks_;
  std::vector<std::unique_ptr<balance::Balancer>> balancers_;  // rank 0: by part; null: it has one rank
  std::unique_ptr<balance::Waiting> waiting_;
  std::optional<balance::Decision> pending_;  // rank 0: not broadcast yet
  balance::RankMeasure measure_;
  double data_seconds_ = 0;  // of the steps before
  double data_wait_ = 0;     // the same, the mean of the workers
  int idle_steps_ = 0, moves_ = 0;
  events::ByRank shard_seconds_, energy_;
  std::vector<telemetry::GpuCause> gpu_causes_;  // rank 0: by rank
  std::string evidence_;                         // rank 0: what the speeds of the next decision are from
};

}  // namespace lockstep::train
