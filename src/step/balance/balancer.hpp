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

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "step/balance/cost.hpp"
#include "step/balance/measure.hpp"

namespace lockstep::balance {

// A rank's speed, learnt from noisy samples: the median of the last few, and a mean of these medians, which becomes
// exponential after a while.
//
// - An outlier does not reach the mean, because the median ignores it.
// - A lasting change is adopted as soon as the median shows it (after three of five samples), i.e. when the median
//   differs from the mean by more than `snap` and more than `snap_scatter` times the scatter.
// - A jump by more than `jump` is adopted from the first sample, if the typical (median) micro-batch of that sample
// shows it,
//   too: then the rank was slow and not just one of its micro-batches.

struct SpeedTuning {
  int window = 5;
  int memory = 32;     ///< samples that the mean covers: the newest median has weight 1 / memory, and more at first
  double snap = 0.04;  ///< relative difference between median and mean
  double snap_scatter = 2;
  double jump = 1.8;  ///< factor; below 2, so that half the speed is a jump even if the measurement is inexact
};

class SpeedModel {
 public:
  explicit SpeedModel(SpeedTuning tuning = {}) : tuning_(tuning) {}
  /// Starts the mean with a speed from elsewhere (a probe, a checkpoint), which does not count as a sample.
  void start(double seconds) { mean_ = seconds; }
  /// `mean`, `typical`: seconds per micro-batch, over all micro-batches of a sample and of its median micro-batch.
  /// `jumps`: adopt jumps at once. Returns whether it was one.
  bool add(double mean, double typical, bool jumps);

  bool known() const { return mean_ > 0; }
  double seconds() const { return mean_; }
  /// Number of samples that the mean covers.
  int age() const { return age_; }
  /// Relative distance of samples from the window's median: an exponential mean, in which a single sample counts
  /// little.
  double scatter() const { return scatter_; }
  /// Mean of the last `samples` samples (or of as many as there are, up to 256); used to judge ranks whose speed keeps
  /// changing.
  double long_mean(int samples) const;

 private:
  bool is_jump(double mean, double typical) const;

  SpeedTuning tuning_;
  std::deque<double> window_, history_;
  int age_ = 0;
  double mean_ = 0, scatter_ = 0.05;
};

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
