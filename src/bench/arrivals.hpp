// Events that come at random: failures, or devices that become slow. As many things as there are, each independently of
// its past (exponential times between), together are one Poisson process with the sum of their rates, so one draw gives
// the next event of 16,384 devices, and a second one whose it is.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "lockstep/random.hpp"

namespace lockstep::bench {

class Arrivals {
 public:
  /// Never anything, until a rate is set. Equal seeds and names give equal draws.
  Arrivals(std::uint64_t seed, std::string_view name) : random_(seed, hash_name(name)) { draw(); }

  /// From `now` on so many a second. What was drawn stays: the time left is longer as the rate is lower.
  void set_rate(double now, double per_second);
  /// When the next one comes; infinity while the rate is 0.
  [[nodiscard]] double next() const { return next_; }
  /// The next one has come. Returns whose it is, one of 0 ... things - 1, equally likely.
  [[nodiscard]] int take(int things);

 private:
  void draw();

  RandomStream random_;
  double left_ = 0;  ///< until the next one, in units of 1 / rate, as of `since_`
  double since_ = 0, rate_ = 0;
  double next_ = std::numeric_limits<double>::infinity();
};

}  // namespace lockstep::bench
