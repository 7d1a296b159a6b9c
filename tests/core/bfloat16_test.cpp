#include "core/low_precision.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/random.hpp"

namespace lockstep {

namespace {

float rounded_to_bfloat16(float value) {
  return Bfloat16::to_float(Bfloat16::from_float(value));
}

}  // namespace

TEST(Bfloat16, RoundsToTheNearest) {
  RandomStream random(1, 0);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t bits = (random.below(0x10000) << 16) | random.below(0x10000);
    const auto value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    // its neighbors, upwards meaning away from zero
    const std::uint32_t lower = bits & 0xffff0000U, upper = lower + 0x10000U;
    const double below = std::abs(static_cast<double>(value) - std::bit_cast<float>(lower));
    const double above = std::isfinite(std::bit_cast<float>(upper))
                             ? std::abs(static_cast<double>(std::bit_cast<float>(upper)) - value)
                             : 0x1p128 - std::abs(static_cast<double>(value));
    const bool even = (lower >> 16) % 2 == 0;
    const bool up = above < below || (above == below && !even);
    ASSERT_EQ(Bfloat16::from_float(value), (up ? upper : lower) >> 16) << value;
  }
}

TEST(Bfloat16, TiesGoToTheEvenOne) {
  EXPECT_EQ(rounded_to_bfloat16(1.0F + 0x1p-8F), 1.0F);
  EXPECT_EQ(rounded_to_bfloat16(1.0F + 3 * 0x1p-8F), 1.0F + 0x1p-6F);
  EXPECT_EQ(rounded_to_bfloat16(-1.0F - 0x1p-8F), -1.0F);
}

TEST(Bfloat16, KeepsWhatIsNoNumber) {
  EXPECT_EQ(rounded_to_bfloat16(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(rounded_to_bfloat16(-std::numeric_limits<float>::infinity()), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(rounded_to_bfloat16(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xff80ffffU}) {
    EXPECT_TRUE(std::isnan(rounded_to_bfloat16(std::bit_cast<float>(bits)))) << bits;
  }
  EXPECT_TRUE(std::signbit(rounded_to_bfloat16(-0.0F)));
}

TEST(Bfloat16, ArraysAreAsTheirElements) {
  std::vector<float> values, wide(1003), round(1003);
  RandomStream random(2, 0);
  for (std::size_t i = 0; i < wide.size(); ++i) values.push_back(random.between(-1e3F, 1e3F));
  values[7] = std::numeric_limits<float>::infinity();
  std::vector<std::uint16_t> low(values.size());
  const auto n = static_cast<std::int64_t>(values.size());
  downcast(DType::bf16, values.data(), low.data(), n);
  upcast(DType::bf16, low.data(), wide.data(), n);
  round_to(DType::bf16, values.data(), round.data(), n);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(wide[i], rounded_to_bfloat16(values[i])) << i;
    EXPECT_EQ(round[i], wide[i]) << i;
  }
}

}  // namespace lockstep
