// A rank's speed, learnt from noisy samples: the median of the last few, and a mean of these medians, which becomes
// exponential after a while.
//
// - An outlier does not reach the mean, because the median ignores it.
// - A lasting change is adopted as soon as the median shows it (after three of five samples), i.e. when the median
//   differs from the mean by more than `snap` and more than `snap_scatter` times the scatter.
// - A jump by more than `jump` is adopted from the first sample, if the typical (median) micro-batch of that sample
// shows it,
//   too: then the rank was slow and not just one of its micro-batches.
#pragma once

#include <deque>

namespace lockstep::balance {

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

}  // namespace lockstep::balance
