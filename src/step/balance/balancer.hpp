// The balancer: turns the measurements of each step into a new split from time to time. Rank 0 has one. It reads no
// clock, draws no random numbers and sends nothing, so the simulator runs the same code.
//
// Measurements are collected into samples of at least `sample_seconds`, so that time slices of the operating system do
// not look like noise. After each sample, the best split for the estimated speeds is compared with the current one. A
// move is decided
//   - at once, if a rank's speed has jumped (SpeedModel) and the gain is above the threshold,
//   - else if the gain was above the threshold for `patience` samples in a row.
// The threshold is `least_gain`, or more if the samples scatter. A move that reverts a recent one doubles the patience,
// and ranks are then judged by an equally longer mean, without jumps: a rank whose speed keeps changing soon gets the
// share for its mean speed. Each quiet period halves the patience again.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "step/balance/cost.hpp"
#include "step/balance/measure.hpp"
#include "step/balance/speed_model.hpp"

namespace lockstep::balance {

struct BalancerOptions {
  int micro_batches = 1;
  std::vector<int> workers;            ///< by rank
  std::vector<int> max_micro_batches;  ///< by rank; in total at least `micro_batches`
  std::vector<int> numbers = {};  ///< by rank, if these are only some of the job's ranks: the number to use in reasons;
                                  ///< empty: its own
  double least_gain = 0.02;
  int patience = 3;
  double sample_seconds = 0.1;
  SpeedTuning speed;
};

/// A split, and the reason for it.
struct Decision {
  std::vector<int> counts;
  std::string reason;
  std::vector<double> seconds_per_micro_batch;  ///< by rank; what the decision is based on
  double reduce_seconds = 0;                    ///< exposed time of one partial sum
  double measured = 0;                          ///< seconds of a step with the old split, as measured
  double predicted_before = 0;                  ///< seconds of a step with the old split, as predicted
  double predicted = 0;                         ///< seconds of a step with the new split, as predicted
};

class Balancer {
 public:
  Balancer(BalancerOptions options, std::vector<int> counts);

  /// Speeds from a probe or a checkpoint, by rank; 0: unknown. Returns a better initial split, if it gains more than
  /// `least_gain`.
  std::optional<Decision> start(std::span<const double> seconds_per_micro_batch, double least_gain,
                                const std::string& from);

  /// To be called after each step: the micro-batch counts that it used, the ranks' measurements, its seconds. After a
  /// decision, the old counts may still be passed until the ranks have been told.
  std::optional<Decision> observe(std::span<const int> counts, std::span<const RankMeasure> ranks, double seconds);

  /// Micro-batches of each rank, of `micro_batches` in total, for work without an all-reduce (evaluation), by current
  /// speeds. Returns `before` if no speed is known or another split gains less than `least_gain`.
  std::vector<int> split(int micro_batches, std::span<const int> before) const;

  /// As learnt so far, by rank; 0: unknown.
  std::vector<double> seconds_per_micro_batch() const;
  const std::vector<int>& counts() const { return counts_; }

 private:
  std::size_t ranks() const { return counts_.size(); }
  std::vector<RankCost> costs() const;
  double reduce() const { return reduce_.known() ? reduce_.seconds() : 0; }
  double threshold(std::span<const RankCost> costs) const;
  int horizon() const { return options_.patience << level_; }
  void add(std::span<const RankMeasure> ranks, double seconds);
  void take_sample();
  std::optional<Decision> evaluate();
  void note_directions(const std::vector<int>& counts);
  std::string reason() const;

  BalancerOptions options_;
  std::vector<int> counts_;  ///< the latest decision
  std::vector<SpeedModel> speeds_, fixed_;
  SpeedModel reduce_;

  std::vector<RankMeasure> sums_;  ///< of the current sample
  double seconds_ = 0, reduce_sum_ = 0;
  int steps_ = 0;

  int jumped_ = -1;                        ///< a rank whose speed jumped in the last sample; -1: none
  double jump_factor_ = 0;                 ///< its seconds per micro-batch, relative to those before
  int in_a_row_ = 0;                       ///< number of latest samples with a gain
  int level_ = 0;                          ///< how often the patience has been doubled
  int samples_ = 0;                        ///< number of samples taken so far
  int reversed_at_ = 0;                    ///< number of the sample
  std::vector<int> direction_, moved_at_;  ///< by rank: of its latest move
};

}  // namespace lockstep::balance
