#pragma once

#include <cstdint>

namespace lockstep {

/// The smallest multiple of `step` that is at least `value`, for value >= 0.
template <class Integer>
[[nodiscard]] constexpr Integer round_up(Integer value, Integer step) {
  return (value + step - 1) / step * step;
}

/// The number of groups of `step` that hold `value` things; the last one may be smaller. `value` at least 0, `step` at
/// least 1.
template <class Integer>
[[nodiscard]] constexpr Integer divide_up(Integer value, Integer step) {
  return (value + step - 1) / step;
}

/// `floats` rounded up to whole cache lines: data that follow an aligned array are then aligned, too.
[[nodiscard]] constexpr std::int64_t whole_lines(std::int64_t floats) {
  return round_up<std::int64_t>(floats, 16);
}

}  // namespace lockstep
