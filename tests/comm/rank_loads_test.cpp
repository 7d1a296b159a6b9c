// The figures of all ranks together, against each rank's own reduce plan.
#include "comm/reduce/rank_loads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "core/round_up.hpp"
#include "seeds.hpp"

namespace lockstep::comm {

namespace {

struct LoadsCase {
  GradientBuckets buckets;
  Hosts hosts;
  MicroBatchAssignment assignment;
};

LoadsCase draw(std::mt19937& random) {
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  const int ranks = 1 + below(9), micro_batches = ranks + below(20);
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) names.push_back(std::to_string(below(4)));
  std::vector<int> counts(static_cast<std::size_t>(ranks), 0);
  for (int v = 0; v < micro_batches; ++v) ++counts[static_cast<std::size_t>(below(ranks))];
  std::vector<GradientBuckets::SlotShape> shapes;
  for (int slot = 1 + below(8); slot > 0; --slot) shapes.push_back({1 + below(40'000), below(2) == 0});
  GradientBuckets buckets = GradientBuckets::of_slots(shapes, 1 << 16, micro_batches);
  buckets.spread_owners = below(2) == 0;
  const Topology topology = make_topology(names);
  return {std::move(buckets), Hosts(topology), place_micro_batches(counts, {}, topology.host_of)};
}

void expect_loads_of_plans(const LoadsCase& of) {
  const auto sums = sum_loads(of.buckets.micro_batches, of.assignment, of.hosts);
  const auto slices = slice_loads(of.buckets, of.hosts);
  for (int rank = 0; rank < of.hosts.rank_count(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const ReducePlan plan = reduce_plan(of.assignment, of.hosts, of.buckets, rank);
    EXPECT_EQ(sums[r].roots.size(), plan.sums.roots.size());
    EXPECT_EQ(sums[r].roots.size() + static_cast<std::size_t>(sums[r].read), plan.sums.partials.size());
    EXPECT_EQ(static_cast<std::size_t>(sums[r].host_sums), plan.sums.host_sums.size());
    EXPECT_EQ(static_cast<std::size_t>(sums[r].others), plan.sums.others.size());
    EXPECT_EQ(static_cast<std::size_t>(sums[r].additions()), plan.sums.additions.size());
    std::int64_t own = 0, own_floats = 0, led_floats = 0;
    for (const BucketPlan& bucket : plan.buckets) {
      own += bucket.own_size();
      own_floats += whole_lines(bucket.own_size());
      for (const int number : bucket.led) led_floats += whole_lines(bucket.at(number).size);
    }
    EXPECT_EQ(slices[r].own(), own);
    EXPECT_EQ(slices[r].own_floats(), own_floats);
    EXPECT_EQ(slices[r].gathered.led_floats + slices[r].scattered.led_floats, led_floats);
    const auto made = std::count_if(plan.sums.host_sums.begin(), plan.sums.host_sums.end(), [&](const HostSum& sum) {
      return sum.parts.size() > 1 || sum.parts[0].rank != rank;
    });
    EXPECT_EQ(sums[r].made_sums, made);
    for (const bool streamed : {false, true}) {
      const PlannedBytes bytes = bytes_of(reduce_plan(of.assignment, of.hosts, of.buckets, rank, streamed), of.hosts);
      const PlannedBytes computed = planned_bytes_of(sums[r], slices[r], of.hosts, rank, streamed);
      EXPECT_EQ(computed.inside_host, bytes.inside_host);
      EXPECT_EQ(computed.between_hosts, bytes.between_hosts);
    }
  }
}

}  // namespace

TEST(RankLoads, AreThoseOfEachRanksPlan) {
  for (const unsigned seed : seeds(200)) {
    SCOPED_TRACE(rerun(seed, "comm_test"));
    std::mt19937 random(seed);
    expect_loads_of_plans(draw(random));
  }
}

// A rank sends what it owns to all others, once to each other host.
TEST(RankLoads, UpdatedParametersAreSentLikeFinishedSlices) {
  const Hosts hosts(make_topology({"a", "a", "b", "b"}));
  const auto loads = [&](bool scattered) {
    const std::vector<GradientBuckets::SlotShape> shapes = {{4 * kChunkElements, scattered}};
    return slice_loads(GradientBuckets::of_slots(shapes, 1 << 20, 4), hosts).front();
  };
  const SumLoad sums = sum_loads(4, {{{0}, {1}, {2}, {3}}}, hosts).front();
  const PlannedBytes none = planned_bytes_of(sums, loads(false), hosts, 0, false),
                     divided = planned_bytes_of(sums, loads(true), hosts, 0, false),
                     updated = gathered_bytes_of(loads(true), hosts, 0, false);
  EXPECT_EQ(none.inside_host, divided.inside_host + updated.inside_host);
  EXPECT_EQ(none.between_hosts, divided.between_hosts + updated.between_hosts);
  EXPECT_EQ(updated.between_hosts, kChunkElements * sizeof(float));
  EXPECT_EQ(gathered_bytes_of(loads(true), hosts, 0, true).inside_host, 0);
}

}  // namespace lockstep::comm
