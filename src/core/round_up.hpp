#pragma once

#include <cstdint>

namespace lockstep {

/// The smallest multiple of `step` that is not below `value`; both at least 0.
template <class Integer>
[[nodiscard]] constexpr Integer round_up(Integer value, Integer step) {
  return (value + step - 1) / step * step;
}

/// Groups of `step` that hold `value` things; the last one may hold fewer. `value` at least 0, `step` at least 1.
template <class Integer>
[[nodiscard]] constexpr Integer divide_up(Integer value, Integer step) {
  return (value + step - 1) / step;
}

/// So many floats, rounded up such that what stands behind them begins on a cache line if they do.
[[nodiscard]] constexpr std::int64_t whole_lines(std::int64_t floats) {
  return round_up<std::int64_t>(floats, 16);
}

}  // namespace lockstep
