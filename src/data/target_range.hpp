// What the numbers that samples have to predict range over, and where the ends stand: not every loss takes any number.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

struct TargetRange {
  std::string feature;
  std::string column;  ///< empty: the sums of the feature's numbers, by sample
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
  std::string lowest_at = {}, highest_at = {};  ///< the first sample with it: "songs.csv:17"
};

/// Of each number of the features of kind tensor, and of the sums of those that have several. `columns`: the names of
/// the numbers, feature after feature; `numbers`: [samples, columns]; `name(i)`: of a sample.
[[nodiscard]] std::vector<TargetRange> target_ranges(const std::vector<Feature>& features,
                                                     const std::vector<std::string>& columns,
                                                     std::span<const double> numbers,
                                                     const std::function<std::string(std::size_t)>& name);

}  // namespace lockstep::data
