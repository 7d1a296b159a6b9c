#include "observe/telemetry/gpu_watch.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/median.hpp"

namespace lockstep::telemetry {

namespace {

constexpr double kForeign = 0.25;  // of the time; the driver's samples are shorter than the time between two looks
constexpr double kSlower = 1.2;    // than the best window so far
constexpr double kAsMuch = 0.95;   // of that window's power

/// NaN if any look lacks the value.
double median_of(const std::deque<GpuLook>& looks, double (*value)(const GpuLook&)) {
  std::vector<double> values;
  for (const GpuLook& look : looks) values.push_back(value(look));
  const bool known = std::none_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
  return known ? median(values) : std::nan("");
}

}  // namespace

void GpuWatch::add(const GpuLook& look) {
  looks_.push_back(look);
  if (looks_.size() < kWindow) return;
  if (looks_.size() > kWindow) looks_.pop_front();
  cause_ = judge();
}

// Comparisons with NaN are false, so unknown values never indicate a cause.
GpuCause GpuWatch::judge() {
  const double foreign = median_of(looks_, [](const GpuLook& look) { return look.utilization - look.own; });
  const double seconds = median_of(looks_, [](const GpuLook& look) { return look.micro_batch_seconds; });
  const double watts = median_of(looks_, [](const GpuLook& look) { return look.watts; });
  const auto held = std::count_if(looks_.begin(), looks_.end(), [](const GpuLook& look) { return look.throttled; });
  const bool throttled = 2 * static_cast<std::size_t>(held) > kWindow;
  const bool slower = best_seconds_ > 0 && seconds > kSlower * best_seconds_;
  if (seconds > 0 && (best_seconds_ == 0 || seconds < best_seconds_)) {
    best_seconds_ = seconds;
    best_watts_ = watts;
  }
  if (foreign > kForeign) return GpuCause::co_tenant;
  if (!slower) return GpuCause::none;
  if (throttled) return GpuCause::throttled;
  return watts >= kAsMuch * best_watts_ ? GpuCause::co_tenant : GpuCause::none;
}

}  // namespace lockstep::telemetry
