// PTX's types under their PTX names, and how values are stored in a register (PTX ISA 9.0, "Fundamental Types").
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace lockstep::ptx {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

inline constexpr u32 kLanes = 32;  ///< of a warp
inline constexpr u32 kAllLanes = 0xffffffffU;

/// The width of a register. A predicate's row is a mask of the lanes where it is true.
enum class Width : u8 { predicate, bits16, bits32, bits64 };

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, u64, std::conditional_t<sizeof(T) == 4, u32, u16>>;

template <class T>
inline constexpr Width kWidthOf = std::is_same_v<T, bool> ? Width::predicate
                                  : sizeof(T) == 8        ? Width::bits64
                                  : sizeof(T) == 4        ? Width::bits32
                                                          : Width::bits16;

/// The bits of a result. A NaN becomes the one that GPUs produce ("Floating Point Instructions": in single precision
/// 0x7fffffff, in double precision we use 0x7fffffffffffffff).
template <class T>
BitsOf<T> to_bits(T value) {
  if constexpr (std::is_same_v<T, f32>) {
    return value != value ? 0x7fffffffU : std::bit_cast<u32>(value);
  } else if constexpr (std::is_same_v<T, f64>) {
    return value != value ? 0x7fffffffffffffffULL : std::bit_cast<u64>(value);
  } else {
    return static_cast<BitsOf<T>>(value);
  }
}

template <class T>
T from_bits(BitsOf<T> bits) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

}  // namespace lockstep::ptx
