// Targets of numbers on a scale of their own: a model learns them with mean 0 and standard deviation 1, and says and
// is judged by what it says in their units.
#pragma once

#include <string>
#include <vector>

#include "lockstep/graph_builder.hpp"

namespace lockstep {

/// By number of the target.
struct TargetScale {
  std::vector<double> mean, stddev;
  /// What has been taken off the numbers before they were rounded (Feature::offsets), also off `mean`; empty: nothing.
  std::vector<double> offset = {};
};

/// (value - mean) / stddev. `value`: [b] or [b, 1] of one number, else [b, numbers].
[[nodiscard]] ValueId normalized(GraphBuilder& builder, ValueId value, const TargetScale& scale,
                                 const std::string& name);
/// value * stddev + mean, the way back.
[[nodiscard]] ValueId in_units(GraphBuilder& builder, ValueId value, const TargetScale& scale, const std::string& name);

}  // namespace lockstep
