// Kernels' loops give the same bits on each instruction set that LOCKSTEP_VECTORIZED compiles for: the same source
// compiled for each of them, run if this machine supports it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "device/cpu/lanes.hpp"
#include "device/cpu/softmax.hpp"

namespace lockstep::device {
namespace {

/// Sums, exponentials, and loops that the compiler vectorizes itself; odd sizes, so that there are remainders.
LOCKSTEP_INLINE void mixture(const float* x, float* y, std::int64_t n) {
  const float total = sum(x, n), square = dot(x, x, n), shift = maximum(x, n);
  const float exponentials_sum = exponentials(x, y, n, shift);
  for (std::int64_t i = 0; i < n; ++i) y[i] = y[i] / exponentials_sum + (x[i] - total) * x[i] - square * y[i];
  map(x, y, y, n, [](const Lanes& a, const Lanes& b) LOCKSTEP_INLINE_LAMBDA -> Lanes {
    return vector_tanh(a) * b + vector_erf(a) - vector_sigmoid(b) * vector_log(a * a + 1.0F);
  });
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("arch=x86-64"))) void mixture_base(const float* x, float* y, std::int64_t n) {
  mixture(x, y, n);
}
__attribute__((target("arch=x86-64-v3"))) void mixture_v3(const float* x, float* y, std::int64_t n) {
  mixture(x, y, n);
}
__attribute__((target("arch=x86-64-v4"))) void mixture_v4(const float* x, float* y, std::int64_t n) {
  mixture(x, y, n);
}

std::vector<float> run(void (*function)(const float*, float*, std::int64_t), std::int64_t n) {
  std::vector<float> x(static_cast<std::size_t>(n)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 6 * std::sin(static_cast<float>(i * i % 1013));
  function(x.data(), y.data(), n);
  return y;
}

TEST(InstructionSets, SameBits) {
  if (!__builtin_cpu_supports("x86-64-v3")) GTEST_SKIP() << "only one instruction set to compare";
  for (const std::int64_t n : {1, 15, 16, 37, 65, 1000}) {
    EXPECT_EQ(run(mixture_base, n), run(mixture_v3, n)) << n;
    if (!__builtin_cpu_supports("x86-64-v4")) continue;
    EXPECT_EQ(run(mixture_base, n), run(mixture_v4, n)) << n;
  }
}
#endif

}  // namespace
}  // namespace lockstep::device
