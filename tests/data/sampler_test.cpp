#include "data/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

std::vector<std::uint64_t> places(std::uint64_t size, std::uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<std::uint64_t> result(size);
  for (std::uint64_t i = 0; i < size; ++i) result[i] = permutation(i);
  return result;
}

std::vector<std::int64_t> step_ids(const Sampler& sampler, std::uint64_t step, int micro_batches, std::int64_t batch) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(batch));
  const auto b = all.size() / static_cast<std::size_t>(micro_batches);
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    sampler.ids(step, micro_batch, micro_batches, std::span(all).subspan(static_cast<std::size_t>(micro_batch) * b, b));
  }
  return all;
}

}  // namespace

TEST(Sampler, IsAPermutationForEverySize) {
  for (const std::uint64_t size : {1U, 2U, 3U, 4U, 5U, 7U, 16U, 17U, 63U, 64U, 65U, 1001U, 4097U, 60000U}) {
    auto values = places(size, 5);
    std::sort(values.begin(), values.end());
    for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(values[i], i) << size;
  }
}

TEST(Sampler, EveryPlaceIsEquallyLikely) {
  constexpr int kKeys = 7000, kSize = 7;
  std::vector<int> seen(kSize * kSize);
  for (int key = 0; key < kKeys; ++key) {
    const auto values = places(kSize, static_cast<std::uint64_t>(key));
    for (int i = 0; i < kSize; ++i) ++seen[static_cast<std::size_t>(i * kSize) + values[static_cast<std::size_t>(i)]];
  }
  double chi_square = 0;
  for (const int count : seen) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 75);  // 36 degrees of freedom: exceeded once in 6,000 trials
}

TEST(Sampler, NeighboursAreNotCorrelated) {
  const auto values = places(10007, 3);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    sum += (static_cast<double>(values[i]) - 5003) * (static_cast<double>(values[i + 1]) - 5003);
  }
  const double variance = 10007.0 * 10007.0 / 12;
  EXPECT_LT(std::fabs(sum / (10006 * variance)), 0.04);
}

TEST(Sampler, DoesNotDependOnTheNumberOfMicroBatches) {
  const Sampler sampler(1000, 60, 1);
  for (const std::uint64_t step : {0U, 15U, 16U, 40U}) {
    const auto one = step_ids(sampler, step, 1, 60);
    EXPECT_EQ(step_ids(sampler, step, 4, 60), one);
    EXPECT_EQ(step_ids(sampler, step, 60, 60), one);
  }
}

TEST(Sampler, EpochsHoldEachSampleAtMostOnceInANewOrder) {
  const Sampler sampler(101, 10, 9);
  EXPECT_EQ(sampler.steps_per_epoch(), 10U);
  EXPECT_EQ(sampler.epoch_of(9), 0U);
  EXPECT_EQ(sampler.epoch_of(10), 1U);
  std::vector<std::vector<std::int64_t>> epochs(2);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const auto ids = step_ids(sampler, step, 2, 10);
    auto& epoch = epochs[step / 10];
    epoch.insert(epoch.end(), ids.begin(), ids.end());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(std::adjacent_find(epoch.begin(), epoch.end()), epoch.end());
    EXPECT_GE(epoch.front(), 0);
    EXPECT_LT(epoch.back(), 101);
  }
  EXPECT_NE(step_ids(Sampler(101, 10, 10), 0, 2, 10), step_ids(sampler, 0, 2, 10));
}

TEST(Sampler, EvaluationTakesEverySampleOnceAndPads) {
  const auto order = make_evaluation_order(10);
  EXPECT_EQ(evaluation_micro_batches(10, 4), 3);
  std::vector<std::int64_t> ids(4);
  EXPECT_EQ(order->ids(0, 1, ids), 4);
  EXPECT_EQ(ids, (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(order->ids(3, 2, ids), 2);
  EXPECT_EQ(ids, (std::vector<std::int64_t>{8, 9, 9, 9}));
}

TEST(Sampler, RefusesABatchLargerThanTheSet) {
  try {
    Sampler(5, 6, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(),
                 "job.batch_size: expected at most 5, the number of training samples, found 6; choose a smaller batch");
  }
}

}  // namespace lockstep::data
