// The accuracy that vector_math.hpp states, over a sample of all floats; and the association of reduce.hpp.
#include "device/cpu/lanes.hpp"
#include "device/cpu/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "core/vectorize.hpp"

namespace lockstep::device {
namespace {

using Function = void (*)(const float*, float*, std::int64_t);

LOCKSTEP_VECTORIZED void exp_of(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return vector_exp(v); });
}
LOCKSTEP_VECTORIZED void log_of(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return vector_log(v); });
}
LOCKSTEP_VECTORIZED void tanh_of(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return vector_tanh(v); });
}
LOCKSTEP_VECTORIZED void sigmoid_of(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return vector_sigmoid(v); });
}
LOCKSTEP_VECTORIZED void log1p_of(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return vector_log1p(v); });
}
LOCKSTEP_VECTORIZED void softplus_of(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return vector_softplus(v); });
}
LOCKSTEP_VECTORIZED void expm1_of(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return vector_expm1(v); });
}
LOCKSTEP_VECTORIZED void erf_of(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return vector_erf(v); });
}

/// Every 509th float between low and high.
std::vector<float> sample(float low, float high) {
  std::vector<float> list;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 509) {
    const auto word = static_cast<std::uint32_t>(bits);
    float x = 0;
    std::memcpy(&x, &word, sizeof x);
    if (x >= low && x <= high) list.push_back(x);
  }
  return list;
}

/// The largest distance from `exact`, in ulps (of a float at the exact value).
double worst(Function function, double (*exact)(double), float low, float high) {
  const auto x = sample(low, high);
  std::vector<float> y(x.size());
  function(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double wanted = exact(x[i]);
    const auto rounded = std::max(std::fabs(static_cast<float>(wanted)), std::numeric_limits<float>::min());
    const double ulp = static_cast<double>(std::nextafter(rounded, std::numeric_limits<float>::infinity())) - rounded;
    worst = std::max(worst, std::fabs(y[i] - wanted) / ulp);
  }
  return worst;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double softplus(double x) {
  return std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0);
}

TEST(VectorMath, StatedAccuracy) {
  EXPECT_LE(worst(exp_of, std::exp, -87.3365F, 88.7228F), 1);
  EXPECT_LE(worst(log_of, std::log, std::numeric_limits<float>::min(), std::numeric_limits<float>::max()), 1);
  EXPECT_LE(worst(tanh_of, std::tanh, -100, 100), 1.5);
  EXPECT_LE(worst(sigmoid_of, sigmoid, -87, 100), 2.5);
  EXPECT_LE(worst(erf_of, std::erf, -100, 100), 1.5);
  EXPECT_LE(worst(log1p_of, std::log1p, 0, 1), 2.5);
  EXPECT_LE(worst(softplus_of, softplus, -87, 100), 3);
  EXPECT_LE(worst(expm1_of, std::expm1, -87, 88), 4);
}

TEST(VectorMath, Edges) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(vector_exp(-kInfinity), 0);
  EXPECT_EQ(vector_exp(-100.0F), 0);
  EXPECT_EQ(vector_exp(0.0F), 1);
  EXPECT_EQ(vector_exp(89.0F), kInfinity);
  EXPECT_EQ(vector_log(1.0F), 0);
  EXPECT_EQ(vector_log(kInfinity), kInfinity);
  EXPECT_EQ(vector_tanh(kInfinity), 1);
  EXPECT_EQ(vector_tanh(-kInfinity), -1);
  EXPECT_EQ(vector_erf(-kInfinity), -1);
  EXPECT_EQ(vector_sigmoid(-kInfinity), 0);
  EXPECT_EQ(vector_softplus(-kInfinity), 0);
  EXPECT_EQ(vector_softplus(kInfinity), kInfinity);
  EXPECT_EQ(vector_expm1(-kInfinity), -1);
  EXPECT_EQ(vector_expm1(kInfinity), kInfinity);
  for (const auto function : {exp_of, log_of, tanh_of, sigmoid_of, erf_of, log1p_of, softplus_of, expm1_of}) {
    float y = 0;
    function(&kNan, &y, 1);
    EXPECT_TRUE(std::isnan(y));
  }
}

TEST(VectorMath, OneFloatHasTheBitsOfSixteen) {
  const auto x = sample(-30, 30);
  std::vector<float> y(x.size());
  exp_of(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); i += 101) ASSERT_EQ(y[i], vector_exp(x[i]));
  erf_of(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); i += 101) ASSERT_EQ(y[i], vector_erf(x[i]));
}

TEST(Reduce, SumHasTheStatedAssociation) {
  for (const std::int64_t n : {0, 1, 15, 16, 17, 100, 1027}) {
    std::vector<float> x(static_cast<std::size_t>(n)), lanes(16, 0.0F);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 1e3F;
    for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 16] += x[i];
    for (std::size_t width = 8; width > 0; width /= 2) {
      for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    }
    EXPECT_EQ(sum(x.data(), n), lanes[0]) << n;
  }
}

TEST(Reduce, MaximumOfAnySize) {
  for (const std::int64_t n : {1, 16, 31, 64}) {
    std::vector<float> x(static_cast<std::size_t>(n), -5);
    x[x.size() / 2] = -2;
    EXPECT_EQ(maximum(x.data(), n), -2);
  }
  EXPECT_EQ(maximum(nullptr, 0), -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace lockstep::device
