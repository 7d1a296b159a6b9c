// Balancing: which rank computes which micro-batches, on how many threads, and when that changes. Every rank has one;
// rank 0 decides (step/balance) and broadcasts.
//
// In a step: computed() after this rank's micro-batches; report() is sent to all ranks with the scalars of the step;
// then decide(). A decision that rank 0 makes after step t is announced by a flag with the scalars of step t + 1; then
// the counts are broadcast, and apply from step t + 2 on.
//
// If the model is cut into parts, each part's micro-batches are assigned to the ranks that have it, by their speeds for
// it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "observe/telemetry/gpu_watch.hpp"
#include "run/train/model_parts.hpp"
#include "run/train/run_context.hpp"
#include "run/train/step_flags.hpp"
#include "step/balance/balancer.hpp"
#include "step/balance/record.hpp"
#include "step/balance/waiting.hpp"
#include "step/balance/weights.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::train {

/// What a rank has measured in a step, besides the seconds of its micro-batches.
struct StepMeasure {
  double reduce = 0;       ///< seconds after its last micro-batch: waiting for other ranks, and the exposed all-reduce
  double last_update = 0;  ///< seconds; of the previous step
  telemetry::GpuCause gpu = telemetry::GpuCause::none;  ///< what slows its GPU
  std::optional<double> joules = {};                    ///< energy that its GPU has used since the start; none: not
                                                        ///< measured
};

/// A rank's measurements and flags, in the form that is sent to all ranks.
struct BalanceReport {
  balance::MeasureValues values{};
  std::uint32_t flags = 0;  ///< see run/train/step_flags
};

class Balancing {
 public:
  /// Starts with an equal assignment, or with one by the job's weights. Throws Error(configuration) for a weight that
  /// matches no rank. `parts` must outlive it.
  Balancing(const RunContext& run, const ModelParts& parts);

  /// The assignment for the ranks that have this rank's part of the model: all ranks, if it is not cut.
  const comm::MicroBatchAssignment& assignment() const { return assignments_[own_part()]; }
  /// By part.
  const std::vector<comm::MicroBatchAssignment>& assignments() const { return assignments_; }
  const std::vector<int>& own_micro_batches() const;
  /// The number of micro-batches of each rank.
  const std::vector<int>& counts() const { return counts_; }
  /// Threads that compute on this rank: `threads`, or its share of this host's cores, but no more than it may have
  /// micro-batches.
  int workers() const { return workers_; }
  const std::vector<int>& workers_of_ranks() const { return workers_of_ranks_; }

  /// Limits this rank's micro-batches to what its device's memory can hold; none: limited by the host's memory.
  void limit(std::optional<int> max_micro_batches) { max_micro_batches_ = max_micro_batches; }
  /// With `auto`: improves the first assignment, by the record of a checkpoint of the same ranks, by metrics of earlier
  /// runs on a Prometheus server, or by probing some micro-batches. `step`: steps done so far. Collective. `workload`:
  /// workload_of() of the graph.
  void start(exec::Executor& executor, const comm::GradientBuckets& buckets, const std::string& workload,
             const balance::Record& record, std::int64_t step);

  void computed(exec::Executor& executor, const comm::GradientBuckets& buckets);
  /// What this rank reports to all others about the step.
  [[nodiscard]] BalanceReport report(const StepMeasure& step);
  /// Seconds that this rank has waited for input since the start: the waits of its workers for a micro-batch's inputs,
  /// summed and divided by the number of workers. Every report of data waits uses this number (docs/observability.md).
  double data_wait_seconds() const { return data_wait_; }
  /// Collective, with the sums of the step. `step`: steps done, including this one; `seconds`: its duration. Returns
  /// whether the assignment changes from the next step on.
  bool decide(const exec::StepSums& sums, std::int64_t step, double seconds);

  /// How many micro-batches each rank evaluates, of `micro_batches` in total (for each part), by the same rule as in
  /// training: by current speeds, by weights, or equal. `before`: the previous counts, which are kept if they are as
  /// good. `step`: steps done. Collective.
  std::vector<int> evaluation_counts(int micro_batches, std::vector<int> before, std::int64_t step) const;

  /// On rank 0.
  balance::Record record() const;
  const std::vector<balance::RankTimes>& times() const { return waiting_->times(); }
  /// Seconds per micro-batch in the last step, by rank; -1 for ranks that had no micro-batches.
  const std::vector<double>& micro_batch_seconds() const { return micro_batch_seconds_; }
  /// Joules by rank since the start; -1 for ranks that do not measure them.
  const std::vector<double>& energy() const { return energy_; }
  int moves() const { return moves_; }

 private:
  struct RankFacts {
    double workers = 1;
    double max_micro_batches = 1;  ///< that it has memory for
    double max_of_any_rank = 1;    ///< that any rank may have, for the memory of this one's host
    double seconds_per_micro_batch = 0;
  };
  std::size_t own_part() const { return parts_.own(); }
  std::vector<int> hosts_of_part(std::size_t part) const {
    return parts_.of_part(part, run_.communicator.topology().host_of);
  }
  std::vector<comm::MicroBatchAssignment> assign_micro_batches() const;
  bool is_automatic() const;
  std::vector<std::string> hosts() const;
  [[nodiscard]] std::vector<int> first_counts();
  std::vector<int> counts_by(const std::vector<double>& weights, int micro_batches) const;
  void find_limits(const comm::GradientBuckets& buckets, RankFacts& mine) const;
  double probe(exec::Executor& executor, const comm::GradientBuckets& buckets) const;
  void make_balancers(const std::vector<RankFacts>& facts);
  void begin(bool known, const std::vector<RankFacts>& facts);
  bool try_idle();
  void note_gpus(const std::vector<balance::RankMeasure>& ranks);
  void note(const std::vector<balance::RankMeasure>& ranks);
  /// Merges the decision of one part's balancer into the one to be broadcast.
  void merge(std::size_t part, std::optional<balance::Decision> decision);
  void ask_balancers(const std::vector<balance::RankMeasure>& ranks, std::int64_t step, double seconds);
  void move(std::int64_t step);
  void emit(const balance::Decision& decision, int moved, std::int64_t step) const;

  RunContext run_;
  const ModelParts& parts_;
  std::vector<comm::MicroBatchAssignment> assignments_;  // by part
  std::vector<int> counts_;                              // by rank
  std::vector<double> weights_;                          // of the job; empty: it has none
  int workers_ = 1;
  std::optional<int> max_micro_batches_;
  std::vector<int> workers_of_ranks_;
  std::vector<std::unique_ptr<balance::Balancer>> balancers_;  // rank 0: by part; null: the part has a single rank
  std::unique_ptr<balance::Waiting> waiting_;
  std::optional<balance::Decision> pending_;  // rank 0: decided, but not broadcast yet
  balance::RankMeasure measure_;
  double data_seconds_ = 0;  // of the previous steps
  double data_wait_ = 0;     // the mean over the workers
  int idle_steps_ = 0, moves_ = 0;
  std::vector<double> micro_batch_seconds_, energy_;
  std::vector<telemetry::GpuCause> gpu_causes_;  // rank 0: by rank
  std::string evidence_;                         // rank 0: what the speeds of the next decision are based on
};

}  // namespace lockstep::train
