// Divisor compared with plain division.
#include "core/divisor.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "lockstep/random.hpp"

namespace lockstep {

namespace {

constexpr std::int64_t kMax = std::int64_t{1} << 62;

/// Small numbers, numbers around powers of two, the largest divisor, and random ones.
std::vector<std::int64_t> numbers() {
  std::vector<std::int64_t> found = {0, 1, 2, 3, 5, 6, 7, 10, 50'257, kMax};
  for (int bits = 2; bits < 62; ++bits) {
    for (const int by : {-1, 0, 1}) found.push_back((std::int64_t{1} << bits) + by);
  }
  RandomStream random(7, 0);
  for (int i = 0; i < 200; ++i) {
    found.push_back(static_cast<std::int64_t>(random.word()) << (i % 31) >> (i % 7));
  }
  return found;
}

}  // namespace

TEST(Divisor, DividesAsDivisionDoes) {
  EXPECT_EQ(Divisor(0).value(), 0);
  const std::vector<std::int64_t> all = numbers();
  for (const std::int64_t divisor : all) {
    if (divisor == 0) continue;
    const Divisor by(divisor);
    EXPECT_EQ(by.value(), divisor);
    for (const std::int64_t number : all) {
      const std::int64_t multiple = number / divisor * divisor;
      for (const std::int64_t n :
           {number, multiple, multiple + (divisor - 1), std::numeric_limits<std::int64_t>::max()}) {
        ASSERT_EQ(n / by, n / divisor) << n << " / " << divisor;
        ASSERT_EQ(n % by, n % divisor) << n << " % " << divisor;
      }
    }
  }
}

}  // namespace lockstep
