#include "tools/bench/checkpoint_interval.hpp"

#include <cmath>
#include <limits>

namespace lockstep::bench {

double young_daly_interval(double checkpoint_seconds, double mtbf_seconds) {
  if (mtbf_seconds == 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(2 * checkpoint_seconds * mtbf_seconds);
}

double expected_run_seconds(double steps_seconds, double interval_seconds, double checkpoint_seconds,
                            double restart_seconds, double mtbf_seconds) {
  return steps_seconds / interval_seconds * mtbf_seconds * std::exp(restart_seconds / mtbf_seconds) *
         std::expm1((interval_seconds + checkpoint_seconds) / mtbf_seconds);
}

// The derivative is 0 where (1 - w/M) e^((w + C)/M) = 1; the left side falls from above 1 to 0 as w goes from 0 to M.
double best_interval(double checkpoint_seconds, double mtbf_seconds) {
  double low = 0, high = mtbf_seconds;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    const double left = (1 - middle / mtbf_seconds) * std::exp((middle + checkpoint_seconds) / mtbf_seconds);
    (left > 1 ? low : high) = middle;
  }
  return low;
}

}  // namespace lockstep::bench
