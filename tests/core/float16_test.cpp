#include "core/low_precision.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/random.hpp"

namespace lockstep {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kPatterns = 0x10000;

float rounded_to_float16(float value) {
  return Float16::to_float(Float16::from_float(value));
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

bool is_nan(std::uint32_t half) {
  return (half & 0x7fffU) > 0x7c00U;
}

/// The value of a finite number by its fields, as the standard defines it.
double value_of(std::uint32_t half) {
  const int exponent = static_cast<int>((half >> 10) & 0x1fU);
  const double fraction = half & 0x3ffU;
  const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000U) != 0 ? -size : size;
}

}  // namespace

TEST(Float16, EveryPatternMeansWhatItsFieldsSay) {
  for (std::uint32_t half = 0; half < kPatterns; ++half) {
    const float wide = Float16::to_float(static_cast<std::uint16_t>(half));
    if ((half & 0x7c00U) != 0x7c00U) {
      ASSERT_EQ(static_cast<double>(wide), value_of(half)) << half;
    } else {
      ASSERT_TRUE(is_nan(half) ? std::isnan(wide) : std::isinf(wide)) << half;
    }
    ASSERT_EQ(std::signbit(wide), (half & 0x8000U) != 0) << half;
  }
}

TEST(Float16, EveryPatternComesBack) {
  for (std::uint32_t half = 0; half < kPatterns; ++half) {
    const std::uint32_t expected = is_nan(half) ? half | 0x200U : half;  // quiet
    ASSERT_EQ(Float16::from_float(Float16::to_float(static_cast<std::uint16_t>(half))), expected) << half;
  }
}

// Between two neighbors there is one decision to check: at the midpoint, and one bit to either side of it.
TEST(Float16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t lower = 0; lower < 0x7c00U; ++lower) {
    const double top = lower == 0x7bffU ? 65536 : value_of(lower + 1);
    const auto tie = static_cast<float>((value_of(lower) + top) / 2);
    const std::uint32_t even = lower % 2 == 0 ? lower : lower + 1;
    ASSERT_EQ(Float16::from_float(tie), even) << lower;
    ASSERT_EQ(Float16::from_float(-tie), even | 0x8000U) << lower;
    ASSERT_EQ(Float16::from_float(std::nextafter(tie, 0.0F)), lower) << lower;
    ASSERT_EQ(Float16::from_float(std::nextafter(tie, kInfinity)), lower + 1) << lower;
  }
}

TEST(Float16, AroundTheLargestAndTheSmallest) {
  EXPECT_EQ(rounded_to_float16(65504), 65504);
  EXPECT_EQ(rounded_to_float16(65519.99F), 65504);
  EXPECT_EQ(rounded_to_float16(65520), kInfinity);
  EXPECT_EQ(rounded_to_float16(-65520), -kInfinity);
  EXPECT_EQ(rounded_to_float16(65536), kInfinity);
  EXPECT_EQ(rounded_to_float16(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(rounded_to_float16(0x1p-24F), 0x1p-24F);
  EXPECT_EQ(rounded_to_float16(0x1p-25F), 0.0F);
  EXPECT_EQ(rounded_to_float16(std::nextafter(0x1p-25F, 1.0F)), 0x1p-24F);
  EXPECT_EQ(bits_of(rounded_to_float16(-0x1p-26F)), bits_of(-0.0F));
  EXPECT_EQ(rounded_to_float16(std::numeric_limits<float>::denorm_min()), 0.0F);
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xff80ffffU}) {
    EXPECT_TRUE(std::isnan(rounded_to_float16(std::bit_cast<float>(bits)))) << bits;
  }
}

TEST(Float16, IsTheCompilersOwn) {
#ifdef __FLT16_MANT_DIG__
  for (std::uint32_t half = 0; half < kPatterns; ++half) {
    if (is_nan(half)) continue;
    const auto theirs = static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(half)));
    ASSERT_EQ(bits_of(Float16::to_float(static_cast<std::uint16_t>(half))), bits_of(theirs)) << half;
  }
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 509) {  // 8.4 million floats of all sizes
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(Float16::from_float(value), std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))) << bits;
  }
#else
  GTEST_SKIP() << "this compiler has no _Float16";
#endif
}

TEST(Float16, ArraysAreAsTheirElements) {
  std::vector<float> values, wide(1003), round(1003);
  RandomStream random(2, 0);
  for (std::size_t i = 0; i < wide.size(); ++i) values.push_back(std::ldexp(random.between(-1, 1), int(i % 45) - 27));
  values[7] = kInfinity;
  std::vector<std::uint16_t> low(values.size()), sum(values.size());
  const auto n = static_cast<std::int64_t>(values.size());
  downcast(DType::f16, values.data(), low.data(), n);
  upcast(DType::f16, low.data(), wide.data(), n);
  round_to(DType::f16, values.data(), round.data(), n);
  add_low_precision(DType::f16, low.data(), low.data(), sum.data(), n);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(low[i], Float16::from_float(values[i])) << i;
    EXPECT_EQ(wide[i], rounded_to_float16(values[i])) << i;
    EXPECT_EQ(round[i], wide[i]) << i;
    EXPECT_EQ(sum[i], Float16::from_float(wide[i] + wide[i])) << i;
  }
}

TEST(Float16, StandsBesideBfloat16UnderOneName) {
  const float value = 1.0F / 3;
  for (const DType type : {DType::bf16, DType::f16}) {
    const std::uint16_t expected = type == DType::f16 ? Float16::from_float(value) : Bfloat16::from_float(value);
    const float expected_wide = type == DType::f16 ? Float16::to_float(expected) : Bfloat16::to_float(expected);
    std::uint16_t half = 0, sum = 0;
    float wide = 0, round = 0;
    downcast(type, &value, &half, 1);
    upcast(type, &half, &wide, 1);
    round_to(type, &value, &round, 1);
    add_low_precision(type, &half, &half, &sum, 1);
    EXPECT_EQ(half, expected);
    EXPECT_EQ(wide, expected_wide);
    EXPECT_EQ(round, expected_wide);
    float twice = 0;
    upcast(type, &sum, &twice, 1);
    EXPECT_EQ(twice, 2 * expected_wide);
  }
  EXPECT_TRUE(is_low_precision(Bfloat16::kType) && is_low_precision(Float16::kType));
  EXPECT_FALSE(is_low_precision(DType::f32));
}

}  // namespace lockstep
