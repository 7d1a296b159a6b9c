// The distribution of values, in a few numbers.
#pragma once

#include <span>
#include <vector>

namespace lockstep::telemetry {

/// Of the finite values only. Bucket i holds those in (limits[i - 1], limits[i]], the first also the smallest; all are
/// equally wide. Without values there is one empty bucket, since readers need one.
struct Histogram {
  double min = 0, max = 0, sum = 0, sum_of_squares = 0;
  double count = 0;
  std::vector<double> limits, buckets;
};

[[nodiscard]] Histogram histogram_of(std::span<const float> values);

}  // namespace lockstep::telemetry
