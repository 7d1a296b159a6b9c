// The median.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace lockstep {

/// The upper one of two in the middle; 0 for no values.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace lockstep
