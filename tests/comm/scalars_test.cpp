// The scalars of a step between hosts: the values, and in how many messages they arrive.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <mutex>

#include "comm/reduce/gradient_reducer.hpp"

namespace lockstep::comm {
namespace {

/// Hosts of 1, 2, 3, 1, 2, 3 ... ranks, with non-consecutive ranks.
std::vector<int> unequal_hosts(int hosts) {
  std::vector<int> host_of;
  for (int turn = 0; turn < 3; ++turn) {
    for (int host = 0; host < hosts; ++host) {
      if (turn <= host % 3) host_of.push_back(host);
    }
  }
  return host_of;
}

/// The number of messages that each rank sent in one gathering of scalars, whose results are checked.
std::map<int, std::uint64_t> messages_by_rank(int hosts) {
  const std::vector<int> host_of = unequal_hosts(hosts);
  const int ranks = static_cast<int>(host_of.size()), micro_batches = 2 * ranks + 1;
  const GradientBuckets buckets{.buckets = {{64}}, .micro_batches = micro_batches};
  std::map<int, std::uint64_t> messages;
  std::mutex mutex;
  run_in_threads(
      ranks,
      [&](Communicator& c) {
        const auto reducer = make_reducer(c, buckets);
        const MicroBatchAssignment assignment = place_micro_batches(equal_counts(micro_batches, ranks), {}, host_of);
        reducer->begin_step(0, assignment);
        for (std::uint64_t round = 1; round <= 3; ++round) {
          std::vector<double> values;
          for (const int micro_batch : assignment.micro_batches_of_rank[static_cast<std::size_t>(c.rank())]) {
            values.push_back(micro_batch + 0.5);
            values.push_back(static_cast<double>(round) * micro_batch);
          }
          const std::vector<double> own = {static_cast<double>(c.rank())};
          const std::uint64_t before = c.traffic().messages;
          const Scalars all = reducer->scalars({values, 2, own, 1U << (c.rank() % 20)});
          const std::lock_guard lock(mutex);
          messages[c.rank()] = c.traffic().messages - before;
          ASSERT_EQ(all.values.size(), static_cast<std::size_t>(2 * micro_batches));
          for (int v = 0; v < micro_batches; ++v) {
            EXPECT_EQ(all.values[static_cast<std::size_t>(2 * v)], v + 0.5);
            EXPECT_EQ(all.values[static_cast<std::size_t>(2 * v + 1)], static_cast<double>(round) * v);
          }
          for (int r = 0; r < ranks; ++r) EXPECT_EQ(all.rank_values[static_cast<std::size_t>(r)], r);
          EXPECT_EQ(all.flags, (1U << std::min(ranks, 20)) - 1);
        }
        c.barrier({"end", 0});
      },
      host_of);
  return messages;
}

TEST(ScalarGather, OneRankOfAHostSendsLogTwoOfTheHostsMessages) {
  for (int hosts = 1; hosts <= 9; ++hosts) {
    const std::vector<int> host_of = unequal_hosts(hosts);
    const auto rounds = static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(hosts - 1)));
    for (const auto& [rank, messages] : messages_by_rank(hosts)) {
      const bool first =
          std::find(host_of.begin(), host_of.end(), host_of[static_cast<std::size_t>(rank)]) - host_of.begin() == rank;
      EXPECT_EQ(messages, first ? rounds : 0) << "rank " << rank << " of " << hosts << " hosts";
    }
  }
}

}  // namespace
}  // namespace lockstep::comm
