// The middle of some numbers.
#pragma once

#include <vector>

namespace lockstep {

/// The upper one where two are in the middle; 0 of none.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace lockstep
