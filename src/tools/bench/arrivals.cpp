#include "tools/bench/arrivals.hpp"

#include <cmath>

namespace lockstep::bench {

void Arrivals::set_rate(double now, double per_second) {
  if (per_second == rate_) return;
  left_ -= rate_ * (now - since_);
  since_ = now;
  rate_ = per_second;
  next_ = rate_ > 0 ? since_ + left_ / rate_ : std::numeric_limits<double>::infinity();
}

int Arrivals::take(int things) {
  since_ = next_;
  const int which = random_.below(things);
  draw();
  next_ = since_ + left_ / rate_;
  return which;
}

// Builds 53 random bits from two words: unit() has only 24, too coarse for short times.
void Arrivals::draw() {
  const std::uint64_t high = random_.word(), low = random_.word();
  const double unit = (((high << 21) ^ (low >> 11)) + 0.5) * 0x1p-53;
  left_ = -std::log(unit);
}

}  // namespace lockstep::bench
