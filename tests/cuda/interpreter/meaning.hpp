// The meaning of a computing instruction: a function of a lane's sources, applied to all active lanes. Its operand
// types are those of the function. Tables of them: integers.cpp, floats.cpp, moves.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "cuda/interpreter/warp.hpp"

namespace lockstep::ptx {

struct Meaning {
  std::string_view name;  ///< as PTX writes it, with all modifiers
  Run run = nullptr;
  std::array<Width, 5> operands{};  ///< the destination first
  std::size_t count = 0;            ///< of operands
};

/// Iterates over the lanes' values, of a row or of a mask.
template <class T>
class Source {
 public:
  Source(Warp& warp, Row row) : row_(warp.row<BitsOf<T>>(row)) {}
  T operator[](u32 lane) const { return from_bits<T>(row_[lane]); }

 private:
  const BitsOf<T>* row_;
};
inline constexpr auto kBitOf = [] {
  std::array<u32, kLanes> bits{};
  for (u32 lane = 0; lane < kLanes; ++lane) bits[lane] = 1U << lane;
  return bits;
}();
template <>
class Source<bool> {
 public:
  Source(Warp& warp, Row row) : mask_(warp.predicate(row)) {}
  bool operator[](u32 lane) const { return (mask_ & kBitOf[lane]) != 0; }

 private:
  u32 mask_;
};

/// Of a function of a lane: the lanes where it is true.
template <class Function>
u32 mask_where(const Function& function) {
  std::array<u8, kLanes> is{};
  for (u32 lane = 0; lane < kLanes; ++lane) is[lane] = function(lane);
  u32 mask = 0;
  for (u32 first = 0; first < kLanes; first += 8) {
    u64 eight = 0;
    std::memcpy(&eight, is.data() + first, sizeof eight);
    mask |= static_cast<u32>(eight * 0x0102040810204080U >> 56) << first;  // the lowest bits of 8 bytes
  }
  return mask;
}

/// Values of inactive lanes are computed, too, and discarded: a loop without branches is vectorized. One lane alone is
/// computed alone.
template <auto kFunction, class To, class... From, std::size_t... kAt>
void for_lanes(Warp& warp, const Instruction& instruction, u32 active, std::index_sequence<kAt...> /*at*/) {
  const std::tuple<Source<From>...> from{Source<From>(warp, instruction.from[kAt])...};
  const auto result = [&](u32 lane) { return kFunction(std::get<kAt>(from)[lane]...); };
  const bool is_one = (active & (active - 1)) == 0;
  const auto one = static_cast<u32>(std::countr_zero(active));
  if constexpr (std::is_same_v<To, bool>) {
    const u32 where = is_one ? u32{result(one)} << one : mask_where(result);
    u32& to = warp.predicate(instruction.to);
    to = (to & ~active) | (where & active);
  } else {
    BitsOf<To>* const to = warp.row<BitsOf<To>>(instruction.to);
    if (is_one) {
      to[one] = to_bits<To>(result(one));
      return;
    }
    std::array<BitsOf<To>, kLanes> all;  // NOLINT(cppcoreguidelines-pro-type-member-init): the next line does it
    for (u32 lane = 0; lane < kLanes; ++lane) all[lane] = to_bits<To>(result(lane));
    if (active == kAllLanes) {
      std::memcpy(to, all.data(), sizeof all);
      return;
    }
    for (; active != 0; active &= active - 1) {
      const auto lane = static_cast<u32>(std::countr_zero(active));
      to[lane] = all[lane];
    }
  }
}

template <auto kFunction, class To, class... From>
constexpr Meaning meaning_of(std::string_view name, To (* /*signature*/)(From...)) {
  return {name,
          [](Warp& warp, const Instruction& instruction, u32 active) {
            for_lanes<kFunction, To, From...>(warp, instruction, active, std::index_sequence_for<From...>());
          },
          {kWidthOf<To>, kWidthOf<From>...},
          1 + sizeof...(From)};
}

template <auto kFunction>
constexpr Meaning meaning(std::string_view name) {
  return meaning_of<kFunction>(name, +kFunction);
}

// Comparisons for numbers of all types.
template <class T>
bool eq(T a, T b) {
  return a == b;
}
template <class T>
bool lt(T a, T b) {
  return a < b;
}
template <class T>
bool le(T a, T b) {
  return a <= b;
}
template <class T>
bool gt(T a, T b) {
  return a > b;
}
template <class T>
bool ge(T a, T b) {
  return a >= b;
}

std::span<const Meaning> integer_meanings();
std::span<const Meaning> float_meanings();
std::span<const Meaning> move_meanings();

}  // namespace lockstep::ptx
