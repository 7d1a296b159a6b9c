// Property: the same gradients give the same bits, and the bytes are those of the formula, for any number of ranks,
// hosts and workers, any assignment of micro-batches, and any changes of shares between steps.
#include <bit>

#include "comm/reduce_run.hpp"
#include "seeds.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kSeeds = 60;
constexpr int kWays = 3;
constexpr ReducerOptions kOptions{.timeout = 60s};

// What the result depends on.
struct Problem {
  GradientBuckets buckets;
  int steps = 1;
};

Problem random_problem(std::mt19937& random) {
  return {random_buckets(random, between(random, 1, 40)), between(random, 1, 4)};
}

// Shares stay, move a little, or are dealt anew, to aligned subtrees or to any ranks.
MicroBatchAssignment next_assignment(std::mt19937& random, const MicroBatchAssignment& before, int micro_batches,
                                     const std::vector<int>& hosts) {
  switch (before.micro_batches_of_rank.empty() ? 2 : random() % 3) {
    case 0:
      return before;
    case 1:
      return place_micro_batches(random_counts(random, micro_batches, static_cast<int>(hosts.size())), before,
                                 random() % 2 == 0 ? hosts : std::vector<int>{});
    default:
      return random_assignment(random, micro_batches, hosts);
  }
}

// A configuration that computes it.
Case random_way(std::mt19937& random, const Problem& problem) {
  Case c;
  c.buckets = problem.buckets;
  c.ranks = between(random, 1, 8);
  c.workers = between(random, 1, 3);
  c.hosts = random_hosts(random, c.ranks, 4);
  c.order = static_cast<unsigned>(random());
  c.sleeps = random() % 8 == 0;
  for (int s = 0; s < problem.steps; ++s) {
    const MicroBatchAssignment before = c.assignments.empty() ? MicroBatchAssignment{} : c.assignments.back();
    c.assignments.push_back(next_assignment(random, before, problem.buckets.micro_batches, c.hosts));
  }
  return c;
}

TEST(ReduceProperty, OneHashAndTheBytesOfTheFormulaInAnyWay) {
  for (const unsigned seed : seeds(kSeeds)) {
    std::mt19937 random(seed);
    const Problem problem = random_problem(random);
    std::string hash;
    for (int i = 0; i < kWays; ++i) {
      const Case way = random_way(random, problem);
      const Expected expected = expected_of(way);
      if (i == 0) hash = expected.sha256;
      ASSERT_EQ(expected.sha256, hash) << "the test itself: ways of one problem must have one hash";
      ASSERT_EQ(wrong(way, expected, kOptions), "")
          << "seed " << seed << ", way " << i << ": " << way.text() << "\n  " << rerun(seed, "comm_test");
    }
  }
}

// Controls: violations that the property must detect.

Case three_ranks() {
  Case c;
  c.buckets = buckets_of({5000}, 8);
  c.ranks = 3;
  c.assignments = {place_micro_batches(equal_counts(8, 3))};
  c.hosts = {0, 0, 1};
  return c;
}

TEST(ReduceProperty, SeesTheBitsOfAnotherAssociation) {
  const Case c = three_ranks();
  EXPECT_EQ(wrong(c, expected_of(c), kOptions), "");
  EXPECT_NE(wrong(c, expected_of(c), {.exact = false}).find("hash of the sums"), std::string::npos);

  std::vector<float> left_to_right(5000);
  for (int v = 0; v < 8; ++v) {
    const auto leaf = gradient(c.step(0), v, 0, 5000);
    for (std::size_t i = 0; i < leaf.size(); ++i) left_to_right[i] = v == 0 ? leaf[i] : left_to_right[i] + leaf[i];
  }
  const Expected other{sha256(std::as_bytes(std::span(left_to_right))), 0};
  EXPECT_NE(wrong(c, other, kOptions).find("hash of the sums"), std::string::npos);
}

TEST(ReduceProperty, SeesBytesThatAreNotOfTheFormula) {
  const Case c = three_ranks();
  Expected expected = expected_of(c);
  expected.more_partials = 1;
  EXPECT_NE(wrong(c, expected, kOptions).find("bytes "), std::string::npos);
}

// docs/design/exactness.md: k partial sums cost (k + 1)(R - 1) / R of the gradient, with k at most the number of bits
// set in the number of micro-batches; an aligned split, k = 1, costs as much as a ring all-reduce.
TEST(ReduceProperty, EvenSlicesOnOneHostCostWhatTheClosedFormulaSays) {
  constexpr std::int64_t kParts = 840;  // divisible by 1 ... 8
  std::vector<std::int64_t> cuts;
  for (std::int64_t i = 0; i < kParts; ++i) cuts.push_back(3 * i);
  for (const unsigned seed : seeds(500)) {
    std::mt19937 random(seed);
    const int ranks = between(random, 1, 8), micro_batches = 1 << between(random, 0, 6);
    const GradientBuckets buckets{.buckets = {{3 * kParts, cuts}}, .micro_batches = micro_batches};
    const auto counts = random_counts(random, micro_batches, ranks);
    const MicroBatchAssignment assignment = place_micro_batches(counts);
    const Topology topology{std::vector<int>(static_cast<std::size_t>(ranks), 0), {"a"}};
    for (int rank = 0; rank < ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      const auto k = std::popcount(static_cast<unsigned>(counts[r]));
      const std::int64_t elements = (k + 1) * (ranks - 1) * 3 * kParts / ranks;
      const Hosts hosts(topology);
      const PlannedBytes bytes = bytes_of(reduce_plan(assignment, hosts, buckets, rank), hosts);
      ASSERT_EQ(bytes.inside_host, static_cast<std::uint64_t>(elements) * sizeof(float))
          << fmt::format("seed {}: rank {} of counts {}\n  {}", seed, rank, counts, rerun(seed, "comm_test"));
    }
  }
}

// docs/design/exactness.md: with micro-batches placed by host, each host sends as much as a single rank with the host's
// micro-batches would, (k + 1)(H - 1) / H of the gradient, however many ranks it has.
TEST(ReduceProperty, HostsSendWhatSingleRanksWould) {
  constexpr std::int64_t kParts = 840;
  std::vector<std::int64_t> cuts;
  for (std::int64_t i = 0; i < kParts; ++i) cuts.push_back(i);
  for (const unsigned seed : seeds(500)) {
    std::mt19937 random(seed);
    const int hosts = between(random, 1, 4), each = between(random, 1, 2), micro_batches = 1 << between(random, 0, 6);
    const GradientBuckets buckets{.buckets = {{kParts, cuts}}, .micro_batches = micro_batches};
    const auto counts = random_counts(random, micro_batches, hosts * each);
    std::vector<int> host_of, of_hosts(static_cast<std::size_t>(hosts), 0);
    std::vector<std::string> names(static_cast<std::size_t>(hosts));
    for (int r = 0; r < hosts * each; ++r) {
      host_of.push_back(r / each);
      of_hosts[static_cast<std::size_t>(r / each)] += counts[static_cast<std::size_t>(r)];
    }
    const MicroBatchAssignment assignment = place_micro_batches(counts, {}, host_of);
    for (int host = 0; host < hosts; ++host) {
      std::uint64_t sent = 0;
      const Hosts all({host_of, names});
      for (int i = 0; i < each; ++i) {
        sent += bytes_of(reduce_plan(assignment, all, buckets, host * each + i), all).between_hosts;
      }
      const auto k = std::popcount(static_cast<unsigned>(of_hosts[static_cast<std::size_t>(host)]));
      ASSERT_EQ(sent, static_cast<std::uint64_t>((k + 1) * (hosts - 1) * kParts / hosts) * sizeof(float))
          << fmt::format("seed {}: host {} of counts {}\n  {}", seed, host, counts, rerun(seed, "comm_test"));
    }
  }
}

}  // namespace
}  // namespace lockstep::comm
