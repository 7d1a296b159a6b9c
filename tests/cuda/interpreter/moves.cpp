// Copies and conversions of registers (PTX ISA 9.0: "Data Movement and Conversion Instructions", "cvt").
#include <limits>

#include "cuda/interpreter/meaning.hpp"

namespace lockstep::ptx {

namespace moves {

namespace {

template <class T>
T mov(T a) {
  return a;
}
template <class To, class From>
To cvt(From a) {
  return static_cast<To>(a);
}
// The halves of "mov.b32 {%rs1, %rs2}, %r1", and "mov.b32 %r1, {%rs1, %rs2}": the first one is the lower.
u16 lower_half(u32 a) {
  return static_cast<u16>(a);
}
u16 upper_half(u32 a) {
  return static_cast<u16>(a >> 16);
}
u32 both_halves(u16 a, u16 b) {
  return a | static_cast<u32>(b) << 16;
}
/// Each byte of the result is one of the eight of b and a, a's first, that a digit of the selector names; a digit's
/// highest bit asks for that byte's sign in all its bits.
u32 prmt(u32 a, u32 b, u32 selector) {
  const u64 bytes = static_cast<u64>(b) << 32 | a;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 digit = selector >> (4 * i) & 0xfU;
    const u32 byte = static_cast<u32>(bytes >> (8 * (digit & 7U))) & 0xffU;
    const u32 sign = (byte & 0x80U) != 0 ? 0xffU : 0U;
    result |= ((digit & 8U) != 0 ? sign : byte) << (8 * i);
  }
  return result;
}
/// Rounds towards zero; values that are too large become the largest. NaN becomes the smallest, in which only the
/// highest bit is set, as the manual has it where either type has 64 bits.
template <class To, class From>
To cvt_rzi(From a) {
  constexpr From kEnd = -static_cast<From>(std::numeric_limits<To>::min());
  if (a != a || a < -kEnd) return std::numeric_limits<To>::min();
  return a >= kEnd ? std::numeric_limits<To>::max() : static_cast<To>(a);
}

constexpr Meaning kMeanings[] = {
    meaning<mov<bool>>("mov.pred"),
    meaning<mov<u16>>("mov.b16"),
    meaning<mov<u16>>("mov.u16"),
    meaning<mov<u32>>("mov.b32"),
    meaning<lower_half>("mov.b32.lower"),
    meaning<upper_half>("mov.b32.upper"),
    meaning<both_halves>("mov.b32.both"),
    meaning<mov<u32>>("mov.u32"),
    meaning<mov<u32>>("mov.s32"),
    meaning<mov<u32>>("mov.f32"),
    meaning<mov<u64>>("mov.b64"),
    meaning<mov<u64>>("mov.u64"),
    meaning<mov<u64>>("mov.f64"),
    meaning<mov<u64>>("cvta.to.global.u64"),
    meaning<cvt<u32, u16>>("cvt.u32.u16"),
    meaning<cvt<u64, u16>>("cvt.u64.u16"),
    meaning<cvt<u32, u64>>("cvt.u32.u64"),
    meaning<cvt<u64, u32>>("cvt.u64.u32"),
    meaning<cvt<s64, s32>>("cvt.s64.s32"),
    meaning<cvt<s32, s64>>("cvt.s32.s64"),
    meaning<cvt<u16, u32>>("cvt.u16.u32"),
    meaning<cvt<u16, u64>>("cvt.u16.u64"),
    meaning<cvt<f32, u16>>("cvt.rn.f32.u16"),
    meaning<cvt<f32, u32>>("cvt.rn.f32.u32"),
    meaning<cvt<f32, s32>>("cvt.rn.f32.s32"),
    meaning<cvt<f32, u64>>("cvt.rn.f32.u64"),
    meaning<cvt<f32, s64>>("cvt.rn.f32.s64"),
    meaning<cvt<f64, s64>>("cvt.rn.f64.s64"),
    meaning<cvt<f64, f32>>("cvt.f64.f32"),
    meaning<cvt<f32, f64>>("cvt.rn.f32.f64"),
    meaning<cvt_rzi<s64, f32>>("cvt.rzi.s64.f32"),
    meaning<cvt_rzi<s32, f64>>("cvt.rzi.s32.f64"),
    meaning<prmt>("prmt.b32"),
};

}  // namespace

}  // namespace moves

std::span<const Meaning> move_meanings() {
  return moves::kMeanings;
}

}  // namespace lockstep::ptx
