#include "tools/bench/step_time.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/round_up.hpp"

namespace lockstep::bench {

namespace {

constexpr double kRounding = 1e-9;  // 3 * 1.1 is slightly more than 3.3

std::int64_t whole(double value) {
  return std::floor(value + kRounding);
}
std::int64_t rounded_up(double value) {
  return std::ceil(value - kRounding);
}

double without_micro_batches(const StepLoad& load) {
  if (!load.balanced) return static_cast<double>(load.devices) / load.active * (load.slow > 0 ? load.slow_factor : 1);
  return load.devices / (load.active - load.slow + load.slow / load.slow_factor);
}

// The earliest time, in units of one micro-batch's time on a fast device, at which a device ends a micro-batch and all
// micro-batches are done.
double balanced_micro_batches(const StepLoad& load, std::int64_t micro_batches) {
  const std::int64_t fast = load.active - load.slow;
  const double bound = micro_batches / (fast + load.slow / load.slow_factor);
  std::int64_t on_fast = rounded_up(bound), on_slow = rounded_up(bound / load.slow_factor);
  for (;;) {
    const bool fast_first = fast > 0 && (load.slow == 0 || static_cast<double>(on_fast) <= on_slow * load.slow_factor);
    const double end = fast_first ? static_cast<double>(on_fast) : on_slow * load.slow_factor;
    if (fast * whole(end) + load.slow * whole(end / load.slow_factor) >= micro_batches) return end;
    ++(fast_first ? on_fast : on_slow);
  }
}

}  // namespace

double step_time(const StepLoad& load) {
  if (load.active == load.devices && load.slow == 0) return 1;
  if (load.micro_batches_a_device == 0) return without_micro_batches(load);
  const std::int64_t micro_batches = std::int64_t{load.devices} * load.micro_batches_a_device;
  if (load.balanced) return balanced_micro_batches(load, micro_batches) / load.micro_batches_a_device;
  const std::int64_t most = divide_up<std::int64_t>(micro_batches, load.active);
  return most * (load.slow > 0 ? load.slow_factor : 1) / load.micro_batches_a_device;
}

}  // namespace lockstep::bench
