// Events at random times: failures, or devices that become slow. A number of things, each with exponentially
// distributed times between its own events, together form one Poisson process with the sum of their rates. So one draw
// gives the time of the next event of 16,384 devices, and a second one the device.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "lockstep/random.hpp"

namespace lockstep::bench {

class Arrivals {
 public:
  /// No events until a rate is set. Equal seeds and names give equal draws.
  Arrivals(std::uint64_t seed, std::string_view name) : random_(seed, hash_name(name)) { draw(); }

  /// From `now` on, events per second. The pending draw is kept and rescaled: the lower the rate, the longer the time
  /// left.
  void set_rate(double now, double per_second);
  /// Time of the next event; infinity while the rate is 0.
  double next() const { return next_; }
  /// Takes the event at next(). Returns the thing that it happens to, one of 0 ... things - 1, equally likely.
  [[nodiscard]] int take(int things);

 private:
  void draw();

  RandomStream random_;
  double left_ = 0;  ///< until the next event, in units of 1 / rate, as of `since_`
  double since_ = 0, rate_ = 0;
  double next_ = std::numeric_limits<double>::infinity();
};

}  // namespace lockstep::bench
