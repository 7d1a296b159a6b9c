// Integers, comparisons, selections and bits (PTX ISA 9.0: "Integer Arithmetic Instructions", "Comparison and Selection
// Instructions", "Logic and Shift Instructions").
#include <algorithm>
#include <limits>

#include "cuda/interpreter/meaning.hpp"

namespace lockstep::ptx {

namespace integers {

namespace {

// Sums and products wrap around, so signed ones have the bits of unsigned ones.
template <class T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
T sub(T a, T b) {
  return static_cast<T>(a - b);
}
template <class T>
T mul_lo(T a, T b) {
  return static_cast<T>(a * b);
}
template <class T>
T mad_lo(T a, T b, T c) {
  return static_cast<T>(a * b + c);
}
template <class T>
T neg(T a) {
  return static_cast<T>(0 - a);
}
template <class Wide, class T>
BitsOf<Wide> mul_wide(T a, T b) {
  return static_cast<BitsOf<Wide>>(static_cast<Wide>(a) * static_cast<Wide>(b));
}
u32 mul_hi_u32(u32 a, u32 b) {
  return static_cast<u32>(u64{a} * b >> 32);
}
u64 mul_hi_u64(u64 a, u64 b) {
  __extension__ using u128 = unsigned __int128;
  return static_cast<u64>(static_cast<u128>(a) * b >> 64);
}
u64 mul_hi_s64(s64 a, s64 b) {
  __extension__ using s128 = __int128;
  return static_cast<u64>(static_cast<s128>(a) * b >> 64);
}
template <class T>
BitsOf<T> max(T a, T b) {
  return static_cast<BitsOf<T>>(std::max(a, b));
}
template <class T>
BitsOf<T> min(T a, T b) {
  return static_cast<BitsOf<T>>(std::min(a, b));
}

/// Division by 0, and of the smallest number by -1, yields an unspecified value: here 0. A kernel that does so in an
/// active lane is reported (division.hpp).
template <class T>
bool can_divide(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1 && a == std::numeric_limits<T>::min()) return false;
  }
  return b != 0;
}
template <class T>
BitsOf<T> div(T a, T b) {
  return can_divide(a, b) ? static_cast<BitsOf<T>>(a / b) : 0;
}
template <class T>
BitsOf<T> rem(T a, T b) {
  return can_divide(a, b) ? static_cast<BitsOf<T>>(a % b) : 0;
}
template <auto kFunction, class T>
constexpr Meaning division(std::string_view name) {
  Meaning whole = meaning<kFunction>(name);
  whole.run = [](Warp& warp, const Instruction& instruction, u32 active) {
    const auto* const a = warp.row<BitsOf<T>>(instruction.from[0]);
    const auto* const b = warp.row<BitsOf<T>>(instruction.from[1]);
    for (u32 left = active; left != 0; left &= left - 1) {
      const auto lane = static_cast<u32>(std::countr_zero(left));
      if (!can_divide(static_cast<T>(a[lane]), static_cast<T>(b[lane])))
        warp.report(instruction, lane, "divides by 0", "");
    }
    meaning<kFunction>("").run(warp, instruction, active);
  };
  return whole;
}

template <class T>
T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T>
T bit_not(T a) {
  if constexpr (std::is_same_v<T, bool>) {
    return !a;
  } else {
    return static_cast<T>(~a);
  }
}
/// Shifts by more than the width count as shifts by the width.
template <class T>
T shl(T a, u32 by) {
  return by < sizeof(T) * 8 ? static_cast<T>(a << by) : T{0};
}
template <class T>
BitsOf<T> shr(T a, u32 by) {
  constexpr u32 kMaxShift = sizeof(T) * 8 - 1;
  if constexpr (std::is_signed_v<T>) {
    return static_cast<BitsOf<T>>(a >> std::min(by, kMaxShift));
  } else {
    return by <= kMaxShift ? static_cast<T>(a >> by) : T{0};
  }
}
/// Bit field insert: the `count` low bits of a, inserted into b from bit `at` on.
u64 bfi_b64(u64 a, u64 b, u32 at, u32 count) {
  at &= 0xffU;
  count &= 0xffU;
  if (at > 63 || count == 0) return b;
  const u64 mask = (count >= 64 ? ~u64{0} : (u64{1} << count) - 1) << at;
  return (b & ~mask) | (a << at & mask);
}

template <class T>
T selp(T a, T b, bool c) {
  return c ? a : b;
}
template <class T>
bool ne(T a, T b) {
  return a != b;
}

constexpr Meaning kMeanings[] = {
    meaning<add<u16>>("add.s16"),
    meaning<add<u32>>("add.s32"),
    meaning<add<u32>>("add.u32"),
    meaning<add<u64>>("add.s64"),
    meaning<add<u64>>("add.u64"),
    meaning<sub<u16>>("sub.s16"),
    meaning<sub<u32>>("sub.s32"),
    meaning<sub<u32>>("sub.u32"),
    meaning<sub<u64>>("sub.s64"),
    meaning<sub<u64>>("sub.u64"),
    meaning<neg<u32>>("neg.s32"),
    meaning<neg<u64>>("neg.s64"),
    meaning<mul_lo<u32>>("mul.lo.s32"),
    meaning<mul_lo<u32>>("mul.lo.u32"),
    meaning<mul_lo<u64>>("mul.lo.s64"),
    meaning<mul_lo<u64>>("mul.lo.u64"),
    meaning<mad_lo<u32>>("mad.lo.s32"),
    meaning<mad_lo<u64>>("mad.lo.s64"),
    meaning<mul_wide<u64, u32>>("mul.wide.u32"),
    meaning<mul_wide<s64, s32>>("mul.wide.s32"),
    meaning<mul_hi_u32>("mul.hi.u32"),
    meaning<mul_hi_u64>("mul.hi.u64"),
    meaning<mul_hi_s64>("mul.hi.s64"),
    division<div<u32>, u32>("div.u32"),
    division<div<s32>, s32>("div.s32"),
    division<div<u64>, u64>("div.u64"),
    division<div<s64>, s64>("div.s64"),
    division<rem<u32>, u32>("rem.u32"),
    division<rem<s32>, s32>("rem.s32"),
    division<rem<u64>, u64>("rem.u64"),
    division<rem<s64>, s64>("rem.s64"),
    meaning<max<u32>>("max.u32"),
    meaning<max<s32>>("max.s32"),
    meaning<max<u64>>("max.u64"),
    meaning<max<s64>>("max.s64"),
    meaning<min<u32>>("min.u32"),
    meaning<min<s32>>("min.s32"),
    meaning<min<u64>>("min.u64"),
    meaning<min<s64>>("min.s64"),
    meaning<bit_and<bool>>("and.pred"),
    meaning<bit_and<u16>>("and.b16"),
    meaning<bit_and<u32>>("and.b32"),
    meaning<bit_and<u64>>("and.b64"),
    meaning<bit_or<bool>>("or.pred"),
    meaning<bit_or<u16>>("or.b16"),
    meaning<bit_or<u32>>("or.b32"),
    meaning<bit_or<u64>>("or.b64"),
    meaning<bit_xor<bool>>("xor.pred"),
    meaning<bit_xor<u16>>("xor.b16"),
    meaning<bit_xor<u32>>("xor.b32"),
    meaning<bit_xor<u64>>("xor.b64"),
    meaning<bit_not<bool>>("not.pred"),
    meaning<bit_not<u16>>("not.b16"),
    meaning<bit_not<u32>>("not.b32"),
    meaning<bit_not<u64>>("not.b64"),
    meaning<shl<u16>>("shl.b16"),
    meaning<shl<u32>>("shl.b32"),
    meaning<shl<u64>>("shl.b64"),
    meaning<shr<u16>>("shr.u16"),
    meaning<shr<u32>>("shr.u32"),
    meaning<shr<s32>>("shr.s32"),
    meaning<shr<u64>>("shr.u64"),
    meaning<shr<s64>>("shr.s64"),
    meaning<bfi_b64>("bfi.b64"),
    meaning<selp<u16>>("selp.b16"),
    meaning<selp<u16>>("selp.u16"),
    meaning<selp<u32>>("selp.b32"),
    meaning<selp<u32>>("selp.f32"),
    meaning<selp<u32>>("selp.u32"),
    meaning<selp<u32>>("selp.s32"),
    meaning<selp<u64>>("selp.b64"),
    meaning<selp<u64>>("selp.f64"),
    meaning<selp<u64>>("selp.u64"),
    meaning<eq<u16>>("setp.eq.s16"),
    meaning<ne<u16>>("setp.ne.s16"),
    meaning<eq<u32>>("setp.eq.b32"),
    meaning<eq<u32>>("setp.eq.s32"),
    meaning<ne<u32>>("setp.ne.s32"),
    meaning<lt<s32>>("setp.lt.s32"),
    meaning<le<s32>>("setp.le.s32"),
    meaning<gt<s32>>("setp.gt.s32"),
    meaning<ge<s32>>("setp.ge.s32"),
    meaning<lt<u32>>("setp.lt.u32"),
    meaning<le<u32>>("setp.le.u32"),
    meaning<gt<u32>>("setp.gt.u32"),
    meaning<ge<u32>>("setp.ge.u32"),
    meaning<eq<u64>>("setp.eq.b64"),
    meaning<ne<u64>>("setp.ne.b64"),
    meaning<eq<u64>>("setp.eq.s64"),
    meaning<ne<u64>>("setp.ne.s64"),
    meaning<lt<s64>>("setp.lt.s64"),
    meaning<le<s64>>("setp.le.s64"),
    meaning<gt<s64>>("setp.gt.s64"),
    meaning<ge<s64>>("setp.ge.s64"),
    meaning<lt<u64>>("setp.lt.u64"),
    meaning<le<u64>>("setp.le.u64"),
    meaning<gt<u64>>("setp.gt.u64"),
    meaning<ge<u64>>("setp.ge.u64"),
};

}  // namespace

}  // namespace integers

std::span<const Meaning> integer_meanings() {
  return integers::kMeanings;
}

}  // namespace lockstep::ptx
