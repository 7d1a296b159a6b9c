// Floating point (PTX ISA 9.0: "Floating Point Instructions", "setp"). Nothing is flushed or approximated: modifiers
// for these are unknown here. The compiler fuses nothing by itself; which kernels may ask for it, kernel_limits_test
// says.
#include <cmath>

#include "cuda/interpreter/meaning.hpp"

namespace lockstep::ptx {

namespace floats {

namespace {

template <class T>
T add(T a, T b) {
  return a + b;
}
template <class T>
T sub(T a, T b) {
  return a - b;
}
template <class T>
T mul(T a, T b) {
  return a * b;
}
template <class T>
T div(T a, T b) {
  return a / b;
}
template <class T>
T rcp(T a) {
  return 1 / a;
}
template <class T>
T sqrt(T a) {
  return std::sqrt(a);
}
f32 fma(f32 a, f32 b, f32 c) {
  return std::fma(a, b, c);
}
/// For a number and a NaN: the number. +0 is larger than -0.
template <class T>
T max(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <class T>
T min(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
// Changes only the sign, also of a NaN, whose payload the manual leaves open.
u32 neg_f32(u32 a) {
  return a ^ 0x80000000U;
}
u32 abs_f32(u32 a) {
  return a & 0x7fffffffU;
}
u64 neg_f64(u64 a) {
  return a ^ 0x8000000000000000U;
}
u64 abs_f64(u64 a) {
  return a & 0x7fffffffffffffffU;
}

// Ordered comparisons, including those of meaning.hpp, are false if an operand is NaN; those with a u are true.
template <class T>
bool ne(T a, T b) {
  return a < b || a > b;
}
template <class T>
bool equ(T a, T b) {
  return !ne(a, b);
}
template <class T>
bool neu(T a, T b) {
  return !(a == b);
}
template <class T>
bool ltu(T a, T b) {
  return !(a >= b);
}
template <class T>
bool leu(T a, T b) {
  return !(a > b);
}
template <class T>
bool gtu(T a, T b) {
  return !(a <= b);
}
template <class T>
bool geu(T a, T b) {
  return !(a < b);
}
template <class T>
bool num(T a, T b) {
  return a == a && b == b;
}
template <class T>
bool nan(T a, T b) {
  return a != a || b != b;
}

constexpr Meaning kMeanings[] = {
    meaning<add<f32>>("add.rn.f32"),   meaning<add<f64>>("add.rn.f64"),   meaning<sub<f32>>("sub.rn.f32"),
    meaning<sub<f64>>("sub.rn.f64"),   meaning<mul<f32>>("mul.rn.f32"),   meaning<mul<f64>>("mul.rn.f64"),
    meaning<div<f32>>("div.rn.f32"),   meaning<div<f64>>("div.rn.f64"),   meaning<rcp<f32>>("rcp.rn.f32"),
    meaning<rcp<f64>>("rcp.rn.f64"),   meaning<sqrt<f32>>("sqrt.rn.f32"), meaning<sqrt<f64>>("sqrt.rn.f64"),
    meaning<max<f32>>("max.f32"),      meaning<max<f64>>("max.f64"),      meaning<min<f32>>("min.f32"),
    meaning<min<f64>>("min.f64"),      meaning<neg_f32>("neg.f32"),       meaning<neg_f64>("neg.f64"),
    meaning<abs_f32>("abs.f32"),       meaning<abs_f64>("abs.f64"),       meaning<eq<f32>>("setp.eq.f32"),
    meaning<ne<f32>>("setp.ne.f32"),   meaning<lt<f32>>("setp.lt.f32"),   meaning<le<f32>>("setp.le.f32"),
    meaning<gt<f32>>("setp.gt.f32"),   meaning<ge<f32>>("setp.ge.f32"),   meaning<equ<f32>>("setp.equ.f32"),
    meaning<neu<f32>>("setp.neu.f32"), meaning<ltu<f32>>("setp.ltu.f32"), meaning<leu<f32>>("setp.leu.f32"),
    meaning<gtu<f32>>("setp.gtu.f32"), meaning<geu<f32>>("setp.geu.f32"), meaning<num<f32>>("setp.num.f32"),
    meaning<fma>("fma.rn.f32"),        meaning<nan<f32>>("setp.nan.f32"), meaning<eq<f64>>("setp.eq.f64"),
    meaning<ne<f64>>("setp.ne.f64"),   meaning<lt<f64>>("setp.lt.f64"),   meaning<le<f64>>("setp.le.f64"),
    meaning<gt<f64>>("setp.gt.f64"),   meaning<ge<f64>>("setp.ge.f64"),   meaning<equ<f64>>("setp.equ.f64"),
    meaning<neu<f64>>("setp.neu.f64"), meaning<ltu<f64>>("setp.ltu.f64"), meaning<leu<f64>>("setp.leu.f64"),
    meaning<gtu<f64>>("setp.gtu.f64"), meaning<geu<f64>>("setp.geu.f64"), meaning<num<f64>>("setp.num.f64"),
    meaning<nan<f64>>("setp.nan.f64"),
};

}  // namespace

}  // namespace floats

std::span<const Meaning> float_meanings() {
  return floats::kMeanings;
}

}  // namespace lockstep::ptx
