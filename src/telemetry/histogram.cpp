#include "telemetry/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::telemetry {
namespace {

constexpr int kBuckets = 64;

}  // namespace

Histogram histogram_of(std::span<const float> values) {
  Histogram result;
  result.min = std::numeric_limits<double>::infinity();
  result.max = -result.min;
  for (const float value : values) {
    const auto exact = static_cast<double>(value);
    if (!std::isfinite(exact)) continue;
    result.min = std::min(result.min, exact);
    result.max = std::max(result.max, exact);
    result.sum += exact;
    result.sum_of_squares += exact * exact;
    ++result.count;
  }
  if (result.count == 0) return {.limits = {0}, .buckets = {0}};
  const double width = (result.max - result.min) / kBuckets;
  if (width == 0) {
    result.limits = {result.max};
    result.buckets = {result.count};
    return result;
  }
  for (int i = 1; i < kBuckets; ++i) result.limits.push_back(result.min + i * width);
  result.limits.push_back(result.max);
  result.buckets.assign(kBuckets, 0);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double place = std::ceil((static_cast<double>(value) - result.min) / width) - 1;
    result.buckets[static_cast<std::size_t>(std::clamp(place, 0.0, kBuckets - 1.0))] += 1;
  }
  return result;
}

}  // namespace lockstep::telemetry
