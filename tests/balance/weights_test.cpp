#include "step/balance/weights.hpp"

#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "step/balance/cost.hpp"
#include "step/balance/record.hpp"

namespace lockstep::balance {
namespace {

const std::vector<RankHost> kRanks = {
    {"a", "NVIDIA A100-SXM4-40GB"}, {"a", "NVIDIA A100-SXM4-40GB"}, {"b", "Tesla T4"}};

}  // namespace

TEST(Weights, HostBeforeModelBeforePartOfAModel) {
  using Doubles = std::vector<double>;
  EXPECT_EQ(weights_of_ranks({{"A100", 2}, {"T4", 1}}, kRanks, "k"), (Doubles{2, 2, 1}));
  EXPECT_EQ(weights_of_ranks({{"A100", 2}}, kRanks, "k"), (Doubles{2, 2, 1}));
  EXPECT_EQ(weights_of_ranks({{"A100", 2}, {"b", 0.5}, {"Tesla T4", 3}}, kRanks, "k"), (Doubles{2, 2, 0.5}));
  EXPECT_EQ(weights_of_ranks({{"T4", 2}, {"Tesla T4", 3}}, kRanks, "k"), (Doubles{1, 1, 3}));
  EXPECT_EQ(weights_of_ranks({{"Tesla", 2}, {"T4", 3}}, kRanks, "k"), (Doubles{1, 1, 2})) << "the longest part";
}

TEST(Weights, AnEntryOfNoRankIsRefusedWithTheKnownNames) {
  try {
    (void)weights_of_ranks({{"A100", 2}, {"H100", 4}}, kRanks, "job.yaml:7:12: job.balance.weights");
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(
        error.what(),
        "job.yaml:7:12: job.balance.weights: expected a host or a processor of this run, found 'H100'; the hosts "
        "are a, b; the processors are NVIDIA A100-SXM4-40GB, Tesla T4 (a part of the name will do); correct the "
        "entry or leave it out");
  }
}

TEST(MemoryForGradients, HoldsPartialSumsAndAGradientForEachWorker) {
  // 8 micro-batches: 4 sums in shared memory, 4 in other memory, 2 for workers.
  MemoryForGradients limit{.memory = 1000, .gradient_bytes = 100, .workers = 2};
  EXPECT_EQ(max_micro_batches(limit, 64), 15);
  EXPECT_EQ(max_micro_batches(limit, 12), 12);
  limit.memory = 999;
  EXPECT_EQ(max_micro_batches(limit, 64), 7);
  limit.memory = 0;
  EXPECT_EQ(max_micro_batches(limit, 64), 1);
}

TEST(MemoryForGradients, SharedMemoryHasRoomForAllRanksOfTheHostAndTheSum) {
  // 7 micro-batches: 3 partial sums of each of two ranks, and one sum.
  SharedMemoryLimit limit{.bytes = 700, .gradient_bytes = 100, .ranks = 2};
  EXPECT_EQ(max_micro_batches(limit, 64), 7);
  limit.bytes = 699;
  EXPECT_EQ(max_micro_batches(limit, 64), 3);
  limit.bytes = 0;
  EXPECT_EQ(max_micro_batches(limit, 64), 1);
}

TEST(Record, FitsTheSameRanksOnly) {
  const Record record{{"a", "b"}, {1, 2}, {0.1, 0.2}};
  EXPECT_TRUE(record.fits({"a", "b"}, {1, 2}));
  EXPECT_FALSE(record.fits({"b", "a"}, {1, 2}));
  EXPECT_FALSE(record.fits({"a", "b"}, {2, 2}));
  EXPECT_FALSE(record.fits({"a"}, {1}));
  EXPECT_FALSE(Record{}.fits({}, {}));
}

}  // namespace lockstep::balance
