#include "tools/bench/network_tiers.hpp"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

// 8 devices of 100 B/s per host, 4 hosts with links of 80 B/s, which is 10 B/s for each of 8 devices.
const std::vector<NetworkTier> kTwoTiers = {{8, 100, 0.5}, {4, 10, 2}};

TEST(NetworkTiers, OneDeviceReducesNothing) {
  EXPECT_EQ(all_reduce_seconds({}, 1000), 0);
}

TEST(NetworkTiers, OneTier) {
  const NetworkTier tier{4, 100, 0.5};
  // Three quarters of 800 bytes at 100 B/s, twice, and a round each way.
  EXPECT_DOUBLE_EQ(all_reduce_seconds({&tier, 1}, 800), 2 * (6 + 0.5));
  EXPECT_DOUBLE_EQ(all_reduce_seconds({&tier, 1}, 800, AllReduceKind::ring), 2 * (6 + 3 * 0.5));
}

TEST(NetworkTiers, TheTierAboveCarriesSlices) {
  // 7/8 of 800 bytes in the host; 3/4 of the slice of 100 between hosts.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(kTwoTiers, 800), 2 * (7 + 0.5) + 2 * (7.5 + 2));
  EXPECT_DOUBLE_EQ(all_reduce_seconds(kTwoTiers, 800, AllReduceKind::ring), 2 * (7 + 7 * 0.5) + 2 * (7.5 + 3 * 2));
}

TEST(NetworkTiers, AThirdTier) {
  std::vector<NetworkTier> tiers = kTwoTiers;
  tiers.push_back({2, 5, 1});
  // Half of the slice of 100 / 4 bytes at 5 B/s.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(tiers, 800), 2 * 7.5 + 2 * 9.5 + 2 * (2.5 + 1));
}

TEST(NetworkTiers, WhatTheBackwardPassHides) {
  const double all = all_reduce_seconds(kTwoTiers, 800), last = all_reduce_seconds(kTwoTiers, 80);
  EXPECT_DOUBLE_EQ(all, 34);
  EXPECT_DOUBLE_EQ(last, 2 * (0.7 + 0.5) + 2 * (0.75 + 2));
  EXPECT_DOUBLE_EQ(exposed_seconds(kTwoTiers, 800, 80, 0), all);
  EXPECT_DOUBLE_EQ(exposed_seconds(kTwoTiers, 800, 80, 10), all - 10);
  EXPECT_DOUBLE_EQ(exposed_seconds(kTwoTiers, 800, 80, 1000), last);
  EXPECT_DOUBLE_EQ(exposed_seconds(kTwoTiers, 800, 8000, 1000), all) << "one bucket: nothing is sent earlier";
}

TEST(NetworkTiers, OfACluster) {
  const NetworkLinks links{.device_bytes_per_second = 100,
                           .host_bytes_per_second = 80,
                           .pod_bytes_per_second = 40,
                           .device_latency = 1,
                           .host_latency = 2,
                           .pod_latency = 3};
  const auto tiers = tiers_of({.devices = 256, .devices_a_host = 8, .hosts_a_pod = 16}, links);
  ASSERT_EQ(tiers.size(), 3U);
  EXPECT_EQ(tiers[0].members, 8);
  EXPECT_EQ(tiers[1].members, 16);
  EXPECT_EQ(tiers[2].members, 2);
  EXPECT_EQ(tiers[0].bytes_per_second, 100);
  EXPECT_EQ(tiers[1].bytes_per_second, 10) << "eight devices share the host's link";
  EXPECT_EQ(tiers[2].bytes_per_second, 5);
  EXPECT_EQ(tiers[2].latency_seconds, 3);
}

TEST(NetworkTiers, TiersOfOneMemberAreLeftOut) {
  const NetworkLinks links{.device_bytes_per_second = 100, .host_bytes_per_second = 80};
  EXPECT_TRUE(tiers_of({.devices = 1}, links).empty());
  EXPECT_EQ(tiers_of({.devices = 8}, links).size(), 1U);
  const auto no_pods = tiers_of({.devices = 64}, links);
  ASSERT_EQ(no_pods.size(), 2U);
  EXPECT_EQ(no_pods[1].members, 8);
  const auto single = tiers_of({.devices = 6, .devices_a_host = 1}, links);
  ASSERT_EQ(single.size(), 1U);
  EXPECT_EQ(single[0].bytes_per_second, 80);
}

}  // namespace
}  // namespace lockstep::bench
