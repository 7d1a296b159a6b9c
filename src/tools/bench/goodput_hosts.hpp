// The hosts of a simulated run: which of them are in the job, which are being repaired, how many of their devices are
// slow. The caller passes in the time.
#pragma once

#include <deque>
#include <vector>

#include "tools/bench/goodput.hpp"

namespace lockstep::bench {

class Hosts {
 public:
  explicit Hosts(const GoodputSetup& setup);

  int devices() const { return static_cast<int>(active_.size()) * a_host_; }  ///< in the job
  int slow_devices() const { return slow_count_; }                            ///< among these
  bool missing() const { return !lost_.empty(); }
  bool can_join() const { return missing() && spares_ > 0; }
  double next_repair() const;    ///< when the next host becomes a spare one again; infinity: none is
                                 ///< being repaired
  double next_recovery() const;  ///< when the next slow device recovers; infinity: none is slow

  /// The host of this device, counted among those in the job, fails. As many spare hosts join as are missing.
  void lose(double now, int device);
  void repair();
  void join();
  /// Does nothing if the device is already slow.
  void slow_down(double now, int device);
  void recover();

 private:
  struct Recovery {
    double at = 0;
    int device = 0;  ///< numbered over the whole job
  };

  int number_of(int device) const;

  int a_host_;
  LostHost lost_host_;
  double repair_seconds_, slow_seconds_;
  std::vector<int> active_;  ///< host numbers
  std::deque<int> lost_;
  std::deque<double> repairs_;       ///< their end times; in order, since all repairs take equally long
  std::deque<Recovery> recoveries_;  ///< in order, for the same reason
  std::vector<bool> slow_;           ///< by device number
  int slow_count_ = 0, spares_;
};

}  // namespace lockstep::bench
