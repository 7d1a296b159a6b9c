// Division by a number that is known before a kernel starts. A GPU has no instruction for it: a 64-bit quotient costs
// dozens of instructions and a branch, and computing positions in tensors takes many quotients and remainders.
#pragma once

#include <bit>
#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

/// n / divisor and n % divisor, for n >= 0, by one multiplication and without a branch. See Granlund and Montgomery
/// (1994), "Division by invariant integers using multiplication".
class Divisor {
 public:
  /// `value`: 0 to 2^62; 0 occurs as an extent of an empty tensor, which is never divided.
  explicit Divisor(std::int64_t value) : value_(value) {
    LOCKSTEP_CHECK(value >= 0 && value <= std::int64_t{1} << 62, "a divisor of sizes");
    const std::uint64_t divisor = value > 0 ? value : 1;
    shift_ = std::bit_width(divisor - 1);  // 2^shift: the smallest power of two that is not less than the divisor
    factor_ = static_cast<std::uint64_t>((Wide{(std::uint64_t{1} << shift_) - divisor} << 64) / divisor + 1);
  }

  LOCKSTEP_HOST_DEVICE std::int64_t value() const { return value_; }

  friend LOCKSTEP_HOST_DEVICE std::int64_t operator/(std::int64_t n, const Divisor& by) {
    const std::uint64_t number = n;
    const auto high = static_cast<std::uint64_t>((Wide{number} * by.factor_) >> 64);
    return (high + number) >> by.shift_;  // both are below 2^63
  }
  friend LOCKSTEP_HOST_DEVICE std::int64_t operator%(std::int64_t n, const Divisor& by) {
    return n - n / by * by.value_;
  }

 private:
  __extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using): nvcc takes no __extension__ there
  std::int64_t value_;
  std::uint64_t factor_ = 0;
  int shift_ = 0;
};

}  // namespace lockstep
