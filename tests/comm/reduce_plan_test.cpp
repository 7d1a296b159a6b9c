// The plans of all ranks, checked against each other: any micro-batches on any ranks on any hosts. Sums are simulated
// as the text of their association, so that each leaf must be added exactly once, and in the tree's order.
#include "comm/reduce/reduce_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include "comm/reduce_cases.hpp"
#include "seeds.hpp"

namespace lockstep::comm {

namespace {

using What = PlannedMessage::What;

std::string association(const Tree& tree, TreeNode node) {
  if (node.level == 0) return std::to_string(node.index);
  return "(" + association(tree, tree.left(node)) + "+" + association(tree, tree.right(node)) + ")";
}

/// The text of a sum whose operands have these texts.
std::string sum_text(std::vector<std::string> texts, const std::vector<Addition>& additions) {
  for (const Addition& addition : additions) {
    texts.push_back("(" + texts[static_cast<std::size_t>(addition.left)] + "+" +
                    texts[static_cast<std::size_t>(addition.right)] + ")");
  }
  return texts.back();
}

struct PlannedWorld {
  GradientBuckets buckets;
  Tree tree{1};
  Hosts hosts{Topology{}};
  std::vector<ReducePlan> plans;
};

PlannedWorld random_world(std::mt19937& random) {
  PlannedWorld world;
  const int ranks = 1 + static_cast<int>(random() % 9), micro_batches = 1 + static_cast<int>(random() % 24);
  std::vector<int> host_of;
  int hosts = 0;
  for (int r = 0; r < ranks; ++r) {
    host_of.push_back(static_cast<int>(random() % static_cast<unsigned>(hosts + 1)));
    hosts = std::max(hosts, host_of.back() + 1);
  }
  world.buckets = random_buckets(random, micro_batches);
  world.tree = Tree(micro_batches);
  world.hosts = Hosts({host_of, std::vector<std::string>(static_cast<std::size_t>(hosts))});
  const MicroBatchAssignment assignment = random_assignment(random, micro_batches, host_of);
  for (int r = 0; r < ranks; ++r) world.plans.push_back(reduce_plan(assignment, world.hosts, world.buckets, r));
  return world;
}

}  // namespace

TEST(ReducePlan, EverySendHasItsReceiveInOneOrder) {
  for (const unsigned seed : seeds(300)) {
    std::mt19937 random(seed);
    const PlannedWorld world = random_world(random);
    for (int b = 0; b < world.buckets.count(); ++b) {
      using Wire = std::vector<std::tuple<int, int>>;  // (slice, number)
      std::map<std::tuple<int, int, What>, Wire> sent, received;
      for (const ReducePlan& plan : world.plans) {
        for (const auto& m : planned_sends(plan, world.hosts, b)) {
          ASSERT_NE(m.peer, plan.rank);
          sent[{plan.rank, m.peer, m.what}].emplace_back(m.slice, m.number);
        }
        for (const auto& m : planned_receives(plan, world.hosts, b)) {
          received[{m.peer, plan.rank, m.what}].emplace_back(m.slice, m.number);
        }
      }
      ASSERT_EQ(sent, received) << rerun(seed, "comm_test");
    }
  }
}

TEST(ReducePlan, BytesAreThoseOfItsMessages) {
  for (const unsigned seed : seeds(300)) {
    std::mt19937 random(seed);
    const PlannedWorld world = random_world(random);
    for (const ReducePlan& plan : world.plans) {
      std::uint64_t inside = 0, between = 0;
      for (int b = 0; b < world.buckets.count(); ++b) {
        for (const auto& m : planned_sends(plan, world.hosts, b)) {
          const std::int64_t size = plan.buckets[static_cast<std::size_t>(b)].at(m.slice).size;
          const bool is_inside = world.hosts.host_of(m.peer) == world.hosts.host_of(plan.rank);
          (is_inside ? inside : between) += static_cast<std::uint64_t>(size) * sizeof(float);
        }
      }
      const PlannedBytes bytes = bytes_of(plan, world.hosts);
      ASSERT_EQ(bytes.inside_host, inside) << rerun(seed, "comm_test");
      ASSERT_EQ(bytes.between_hosts, between) << rerun(seed, "comm_test");
    }
  }
}

TEST(ReducePlan, EveryLeafIsAddedOnceInTheTreesOrder) {
  for (const unsigned seed : seeds(300)) {
    std::mt19937 random(seed);
    const PlannedWorld world = random_world(random);
    const std::string expected = association(world.tree, world.tree.root());
    for (const ReducePlan& plan : world.plans) {
      std::vector<std::string> operands;
      for (const Partial& partial : plan.sums.partials) {
        const ReducePlan& of = world.plans[static_cast<std::size_t>(partial.rank)];
        ASSERT_EQ(of.sums.roots[static_cast<std::size_t>(partial.root)], partial.node);
        operands.push_back(association(world.tree, partial.node));
      }
      for (const OtherSum& other : plan.sums.others) {
        const ReducePlan& of = world.plans[static_cast<std::size_t>(other.leader)];
        const HostSum& sum = of.sums.host_sums[static_cast<std::size_t>(other.number)];
        std::vector<std::string> parts;
        for (const Partial& part : sum.parts) parts.push_back(association(world.tree, part.node));
        operands.push_back(sum_text(parts, sum.additions));
        ASSERT_EQ(operands.back(), association(world.tree, other.node));
      }
      ASSERT_EQ(sum_text(operands, plan.sums.additions), expected) << rerun(seed, "comm_test");
    }
  }
}

TEST(ReducePlan, EveryElementHasOneOwnerAndOneLeaderAHost) {
  for (const unsigned seed : seeds(300)) {
    std::mt19937 random(seed);
    const PlannedWorld world = random_world(random);
    for (std::size_t b = 0; b < world.buckets.buckets.size(); ++b) {
      std::int64_t owned = 0;
      std::map<std::pair<int, std::int64_t>, int> leaders;  // by host and the slice's first element
      for (const ReducePlan& plan : world.plans) {
        const BucketPlan& bucket = plan.buckets[b];
        owned += bucket.own_size();
        for (const int number : bucket.led) {
          ++leaders[{world.hosts.host_of(plan.rank), bucket.at(number).first}];
          ASSERT_NE(world.hosts.host_of(bucket.at(number).owner), world.hosts.host_of(plan.rank));
        }
      }
      ASSERT_EQ(owned, world.buckets.buckets[b].elements) << rerun(seed, "comm_test");
      const auto slices = static_cast<int>(world.plans[0].buckets[b].slices.size());
      ASSERT_EQ(static_cast<int>(leaders.size()), slices * (world.hosts.count() - 1)) << rerun(seed, "comm_test");
      for (const auto& [slice, count] : leaders) ASSERT_EQ(count, 1) << rerun(seed, "comm_test");
    }
  }
}

TEST(ReducePlan, AHostSendsItsSumOnce) {
  const Hosts hosts({{0, 0, 1, 1}, {"a", "b"}});
  const GradientBuckets buckets = buckets_of({16'384}, 8);
  const auto assignment = place_micro_batches(std::vector<int>{2, 2, 2, 2}, {}, std::vector<int>{0, 0, 1, 1});
  for (const int rank : {0, 1, 2, 3}) {
    const ReducePlan plan = reduce_plan(assignment, hosts, buckets, rank);
    int host_sums = 0;
    for (const auto& message : planned_sends(plan, hosts, 0)) host_sums += message.what == What::host_sum ? 1 : 0;
    EXPECT_EQ(host_sums, 1);
    EXPECT_EQ(bytes_of(plan, hosts).between_hosts, 2 * 4096 * sizeof(float));
  }
}

}  // namespace lockstep::comm
