#include "comm/transport/clock_offset.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lockstep::comm {
namespace {

constexpr std::chrono::seconds kTimeout{30};

/// The measurement of each rank; rank r's clock is `apart` seconds times r ahead of the true one.
std::vector<ClockOffset> measure(const std::vector<int>& host_of, double apart) {
  std::vector<ClockOffset> found(host_of.size());
  run_in_threads(
      static_cast<int>(host_of.size()),
      [&](Communicator& communicator) {
        const double ahead = apart * communicator.rank();
        found[static_cast<std::size_t>(communicator.rank())] =
            clock_offset(communicator, kTimeout, [ahead] { return steady_seconds() + ahead; });
      },
      host_of);
  return found;
}

}  // namespace

TEST(ClockOffset, IsNoFurtherOffThanItSays) {
  const auto found = measure({0, 1, 2}, 1000);
  EXPECT_EQ(found[0].seconds, 0);
  EXPECT_EQ(found[0].error, 0);
  for (int r = 1; r < 3; ++r) {
    const ClockOffset& offset = found[static_cast<std::size_t>(r)];
    EXPECT_GT(offset.error, 0);
    EXPECT_LE(std::abs(offset.seconds + 1000.0 * r), offset.error + 1e-9) << r;  // rounding of doubles of this size
    EXPECT_GE(offset.at, 1000.0 * r);
  }
}

TEST(ClockOffset, RanksOfOneHostReadOneClock) {
  const auto found = measure({0, 0, 1, 0}, 0);
  for (const int r : {0, 1, 3}) {
    EXPECT_EQ(found[static_cast<std::size_t>(r)].seconds, 0);
    EXPECT_EQ(found[static_cast<std::size_t>(r)].error, 0);
  }
  EXPECT_GT(found[2].error, 0);
}

TEST(ClockOffset, HostsFurtherDownTheTreeKnowTheirErrors) {
  const auto found = measure({0, 1, 2, 3, 4, 5, 6, 7}, 1000);
  for (int r = 1; r < 8; ++r) {
    const ClockOffset& offset = found[static_cast<std::size_t>(r)];
    EXPECT_LE(std::abs(offset.seconds + 1000.0 * r), offset.error + 1e-9) << r;
  }
}

// Rank 0 must not serve thousands of hosts one after the other, nor the ranks of a host each.
TEST(ClockOffset, NoRankAnswersMoreThanTheLogarithmOfTheHosts) {
  std::vector<int> host_of;
  for (int r = 0; r < 64; ++r) host_of.push_back(r / 4);  // 16 hosts
  std::vector<std::uint64_t> messages(host_of.size());
  run_in_threads(
      64,
      [&](Communicator& communicator) {
        (void)clock_offset(communicator, kTimeout);
        messages[static_cast<std::size_t>(communicator.rank())] = communicator.traffic().messages;
      },
      host_of);
  const std::uint64_t answers = 32 + 1, within_host = 2;
  EXPECT_EQ(messages[0], 4 * answers + within_host);
  for (const std::uint64_t sent : messages) EXPECT_LE(sent, 4 * answers + within_host);
}

}  // namespace lockstep::comm
