// The area under the ROC curve: how often a positive has a higher score than a negative.
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace lockstep::ops {

/// `scores`: of each sample, with whether it is positive; not NaN. Pairs of equal scores count half. None if all
/// samples are positive, or none is.
[[nodiscard]] std::optional<double> area_under_curve(std::vector<std::pair<double, bool>> scores);

}  // namespace lockstep::ops
