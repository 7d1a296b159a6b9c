// The meaning of a computing instruction: a function of a lane's sources, applied to all active lanes. Its operand
// types are those of the function. Tables of them: integers.cpp, floats.cpp, moves.cpp.
#pragma once

#include <array>
#include <cstddef>
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
template <>
class Source<bool> {
 public:
  Source(Warp& warp, Row row) : mask_(warp.predicate(row)) {}
  bool operator[](u32 lane) const { return (mask_ >> lane & 1U) != 0; }

 private:
  u32 mask_;
};

/// Values of inactive lanes are computed, too, and discarded: a loop without branches is vectorized.
template <auto kFunction, class To, class... From, std::size_t... kAt>
void for_lanes(Warp& warp, const Instruction& instruction, u32 active, std::index_sequence<kAt...> /*at*/) {
  const std::tuple<Source<From>...> from{Source<From>(warp, instruction.from[kAt])...};
  if constexpr (std::is_same_v<To, bool>) {
    u32 result = 0;
    for (u32 lane = 0; lane < kLanes; ++lane) result |= u32{kFunction(std::get<kAt>(from)[lane]...)} << lane;
    u32& to = warp.predicate(instruction.to);
    to = (to & ~active) | (result & active);
  } else {
    BitsOf<To>* const to = warp.row<BitsOf<To>>(instruction.to);
    if (active == kAllLanes) {
      for (u32 lane = 0; lane < kLanes; ++lane) to[lane] = to_bits<To>(kFunction(std::get<kAt>(from)[lane]...));
      return;
    }
    std::array<BitsOf<To>, kLanes> all;
    for (u32 lane = 0; lane < kLanes; ++lane) all[lane] = to_bits<To>(kFunction(std::get<kAt>(from)[lane]...));
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
