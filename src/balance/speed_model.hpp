// A rank's speed, as learnt from noisy samples: the median of the last few, then a mean of it, exponential after a
// while.
//
// - An outlier does not reach the mean: the median takes no notice of it.
// - A lasting change is taken over as soon as the median shows it (after three samples of five): that is a median
//   further from the mean than `snap` and than `snap_scatter` times the scatter.
// - A jump by more than `jump` is taken over from the first sample, if the typical (median) shard of that sample shows
//   it, too: then it was the rank that was slow and not one of its shards.
#pragma once

#include <deque>

namespace lockstep::balance {

struct SpeedTuning {
  int window = 5;
  int memory = 32;     ///< samples that the mean is of: the newest median's weight is 1 / memory, at first more
  double snap = 0.04;  ///< relative difference of median and mean
  double snap_scatter = 2;
  double jump = 1.8;  ///< factor; below 2, so that half the speed is a jump however it is measured
};

class SpeedModel {
 public:
  explicit SpeedModel(SpeedTuning tuning = {}) : tuning_(tuning) {}
  /// A speed from elsewhere, of a probe or a checkpoint: the start of the mean, but no sample.
  void start(double seconds) { mean_ = seconds; }
  /// `mean`, `typical`: seconds a shard, of all shards of a sample and of its median one. `jumps`: take jumps over at
  /// once. Returns whether it was one.
  bool add(double mean, double typical, bool jumps);

  [[nodiscard]] bool known() const { return mean_ > 0; }
  [[nodiscard]] double seconds() const { return mean_; }
  /// Samples that the mean is of.
  [[nodiscard]] int age() const { return age_; }
  /// How far samples are from the window's median, relative: an exponential mean, in which a single one counts little.
  [[nodiscard]] double scatter() const { return scatter_; }
  /// Mean of the last `samples` samples (as many as there are, up to 256); what a flapping rank is judged by.
  [[nodiscard]] double long_mean(int samples) const;

 private:
  [[nodiscard]] bool is_jump(double mean, double typical) const;

  SpeedTuning tuning_;
  std::deque<double> window_, history_;
  int age_ = 0;
  double mean_ = 0, scatter_ = 0.05;
};

}  // namespace lockstep::balance
