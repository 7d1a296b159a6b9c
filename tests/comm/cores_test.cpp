// How ranks share their host's cores.
#include "comm/transport/cores.hpp"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using device::CoreLimits;

CoreLimits cores(std::size_t first, std::size_t count, double quota = 0) {
  CoreLimits limits;
  limits.quota = quota;
  for (std::size_t core = first; core < first + count; ++core) limits.allow(core);
  return limits;
}

TEST(ShareCores, BoundRanksKeepTheirCores) {
  std::vector<CoreLimits> ranks;
  for (std::size_t r = 0; r < 8; ++r) ranks.push_back(cores(14 * r, 14));
  EXPECT_EQ(share_cores(ranks, std::vector<int>(8, 0)), std::vector<int>(8, 14));
}

TEST(ShareCores, RanksThatAreNotBoundShareAll) {
  EXPECT_EQ(share_cores(std::vector<CoreLimits>(8, cores(0, 112)), std::vector<int>(8, 0)), std::vector<int>(8, 14));
  EXPECT_EQ(share_cores(std::vector<CoreLimits>(3, cores(0, 7)), std::vector<int>(3, 0)), std::vector<int>(3, 2));
  EXPECT_EQ(share_cores(std::vector<CoreLimits>(3, cores(0, 3)), std::vector<int>(3, 0)), std::vector<int>(3, 1));
  EXPECT_EQ(share_cores(std::vector<CoreLimits>(5, cores(0, 2)), std::vector<int>(5, 0)), std::vector<int>(5, 1));
}

TEST(ShareCores, OverlappingBindings) {
  // Two ranks on each socket of 8 cores, and one on both.
  const std::vector<CoreLimits> ranks = {cores(0, 8), cores(0, 8), cores(8, 8), cores(8, 8), cores(0, 16)};
  EXPECT_EQ(share_cores(ranks, std::vector<int>(5, 0)), (std::vector<int>{2, 2, 2, 2, 5}));
}

TEST(ShareCores, HostsHaveCoresOfTheirOwn) {
  const std::vector<CoreLimits> ranks = {cores(0, 8), cores(0, 8), cores(0, 4)};
  EXPECT_EQ(share_cores(ranks, std::vector<int>{0, 1, 1}), (std::vector<int>{8, 6, 2}));
}

TEST(ShareCores, TheQuotaIsOfAllRanksOfAHost) {
  EXPECT_EQ(share_cores(std::vector<CoreLimits>(2, cores(0, 64, 8.5)), std::vector<int>{0, 0}),
            (std::vector<int>{4, 4}));
  EXPECT_EQ(share_cores(std::vector<CoreLimits>(2, cores(0, 64, 0.5)), std::vector<int>{0, 0}),
            (std::vector<int>{1, 1}));
  const std::vector<CoreLimits> bound = {cores(0, 2, 8), cores(2, 2, 8)};
  EXPECT_EQ(share_cores(bound, std::vector<int>{0, 0}), (std::vector<int>{2, 2}));
}

}  // namespace
}  // namespace lockstep::comm
