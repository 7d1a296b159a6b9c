// The balancer: from the measures of each step to a new split, now and then. Rank 0 has one. It reads no clock, draws
// no random numbers and sends nothing, so the simulator runs this very code.
//
// Measures are added up to samples of at least `sample_seconds`, so that the time slices of an operating system do
// not look like noise. After each sample the split that the speeds ask for is compared with the present one. A move
// is decided
//   - at once, if a rank's speed has jumped (SpeedModel) and the gain is above the threshold,
//   - else when the gain was above the threshold for `patience` samples in a row.
// The threshold is `least_gain`, and more where the samples scatter. A move that takes back a move of not long ago
// doubles the patience and judges ranks by as long a mean, without jumps: a rank that flaps soon gets the share of its
// mean speed. Each quiet while halves it again.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "balance/cost.hpp"
#include "balance/measure.hpp"
#include "balance/speed_model.hpp"

namespace lockstep::balance {

struct BalancerOptions {
  int shards = 1;
  std::vector<int> workers;       ///< by rank
  std::vector<int> max_shards;    ///< by rank; together at least `shards`
  std::vector<int> numbers = {};  ///< by rank: what reasons call it, of some of the job's ranks; empty: its own
  double least_gain = 0.02;
  int patience = 3;
  double sample_seconds = 0.1;
  SpeedTuning speed;
};

/// A split, and why.
struct Decision {
  std::vector<int> counts;
  std::string reason;
  std::vector<double> seconds_per_shard;  ///< by rank; the evidence
  double reduce_seconds = 0;              ///< exposed, of one partial sum
  double measured = 0;                    ///< seconds of a step with the old split
  double predicted_before = 0;            ///< the same, by the model
  double predicted = 0;                   ///< with the new one
};

class Balancer {
 public:
  Balancer(BalancerOptions options, std::vector<int> counts);

  /// Speeds of a probe or a checkpoint, by rank; 0: not known. Returns a better first split, if it gains more than
  /// `least_gain`.
  std::optional<Decision> start(std::span<const double> seconds_per_shard, double least_gain, const std::string& from);

  /// A step is done: the counts it was done with, what the ranks said, its seconds. After a decision the old counts
  /// may be given for as long as it takes to tell the ranks.
  std::optional<Decision> observe(std::span<const int> counts, std::span<const RankMeasure> ranks, double seconds);

  /// Shards of each rank, of `shards` in all, for work without an all-reduce (evaluation): by the present speeds.
  /// `before`, if no speed is known or another split gains less than `least_gain`.
  [[nodiscard]] std::vector<int> split(int shards, std::span<const int> before) const;

  /// As learnt so far, by rank; 0: not known.
  [[nodiscard]] std::vector<double> seconds_per_shard() const;
  [[nodiscard]] const std::vector<int>& counts() const { return counts_; }

 private:
  [[nodiscard]] std::size_t ranks() const { return counts_.size(); }
  [[nodiscard]] std::vector<RankCost> costs() const;
  [[nodiscard]] double reduce() const { return reduce_.known() ? reduce_.seconds() : 0; }
  [[nodiscard]] double threshold(std::span<const RankCost> costs) const;
  [[nodiscard]] int horizon() const { return options_.patience << level_; }
  void add(std::span<const RankMeasure> ranks, double seconds);
  void take_sample();
  std::optional<Decision> evaluate();
  void note_directions(const std::vector<int>& counts);
  [[nodiscard]] std::string reason() const;

  BalancerOptions options_;
  std::vector<int> counts_;  ///< decided last
  std::vector<SpeedModel> speeds_, fixed_;
  SpeedModel reduce_;

  std::vector<RankMeasure> sums_;  ///< of the sample that is being taken
  double seconds_ = 0, reduce_sum_ = 0;
  int steps_ = 0;

  int jumped_ = -1;                        ///< the rank, in the last sample
  double jump_factor_ = 0;                 ///< its seconds, of those before
  int in_a_row_ = 0;                       ///< samples with a gain
  int level_ = 0;                          ///< patience is doubled so often
  int samples_ = 0;                        ///< taken so far
  int reversed_at_ = 0;                    ///< sample
  std::vector<int> direction_, moved_at_;  ///< by rank: of its last move
};

}  // namespace lockstep::balance
