#pragma once

namespace lockstep {

/// The smallest multiple of `step` that is not below `value`; both at least 0.
template <class Integer>
[[nodiscard]] constexpr Integer round_up(Integer value, Integer step) {
  return (value + step - 1) / step * step;
}

}  // namespace lockstep
