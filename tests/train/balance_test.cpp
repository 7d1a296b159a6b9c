// Shares that move during a run: when they take effect, and that work goes to the fast rank. property_test.cpp checks
// that any shares at any step keep the bits and send the bytes of the formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "config/config.hpp"
#include "device/device.hpp"
#include "lockstep/error.hpp"
#include "lockstep/trainer.hpp"
#include "run/train/catalogue.hpp"
#include "train/napping_relu.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

constexpr const char* kSharesJob = R"(
job:
  name: shares
  seed: 5
  model:
    layers:
      - {conv: {filters: 4, kernel: 3, bias: false}}
      - batch_norm
      - relu
      - {max_pool: {kernel: 4}}
      - flatten
      - {dropout: 0.2}
      - {linear: {features: 10}}
  data:
    train: {digits: {count: 160}}
  batch_size: 32
  micro_batches: 16
  steps: 12
  optimizer: {adamw: {weight_decay: 0.01}}
  clip_norm: 0.5
  evaluate: never
  checkpoint: never
  bucket_bytes: 4096
)";

using MakeRegistries = std::function<Registries(int rank)>;

std::string run_balanced(
    int ranks, const std::vector<std::string>& overrides, TrainerOptions options = {},
    const MakeRegistries& registries_of = [](int) { return Registries::built_in(); }, std::vector<int> hosts = {}) {
  std::mutex mutex;
  std::vector<std::string> hashes;
  run_in_threads(
      ranks,
      [&](Communicator& communicator) {
        const Registries registries = registries_of(communicator.rank());
        const JobFile job =
            config::load_text(kSharesJob, "job.yaml", overrides, train::catalogue_of(registries), false);
        const TrainResult result = train_job(job, communicator, registries, options);
        const std::lock_guard lock(mutex);
        hashes.push_back(result.parameters_sha256);
      },
      std::move(hosts));
  for (const auto& hash : hashes) EXPECT_EQ(hash, hashes.front()) << "ranks disagree";
  return hashes.front();
}

}  // namespace

TEST(Balance, SharesHoldTwoStepsAfterTheyWereAskedFor) {
  class AtStep3 final : public MicroBatchBalancer {
    std::vector<int> balance(std::int64_t step, std::span<const RankLoad> ranks) override {
      EXPECT_EQ(ranks.size(), 2u);
      EXPECT_EQ(ranks[1].micro_batches, step < 5 ? 8 : 11) << step;
      EXPECT_GT(ranks[1].seconds, 0);
      return step == 3 ? std::vector{5, 11} : std::vector<int>{};
    }
  } balancer;
  Events kept;
  TrainerOptions options;
  options.sink = &kept;
  options.balancer = &balancer;
  (void)run_balanced(2, {}, options);
  const auto moves = kept.of<events::Balance>();
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].step, 4);
  EXPECT_EQ(moves[0].shares_by_rank, (events::ByRank{{0, 5}, {1, 11}}));
  EXPECT_EQ(moves[0].micro_batches_moved, 3);
  EXPECT_EQ(kept.of<events::End>().at(0).micro_batches_by_rank, (events::ByRank{{0, 5}, {1, 11}}));
}

TEST(Balance, StepEventsStayShortOnManyRanks) {
  Events kept;
  TrainerOptions options;
  options.sink = &kept;
  (void)run_balanced(18, {"batch_size=40", "micro_batches=20", "steps=2", "threads=1", "balance=equal"}, options);
  for (const events::Step& step : kept.of<events::Step>()) {
    EXPECT_EQ(step.micro_batch_seconds->size(), events::Step::kMostRanks);
    double fastest = step.micro_batch_seconds_of_all->at("max"), slowest = 0;
    for (const auto& [rank, seconds] : *step.micro_batch_seconds) {
      fastest = std::min(fastest, seconds);
      slowest = std::max(slowest, seconds);
    }
    EXPECT_EQ(slowest, step.micro_batch_seconds_of_all->at("max"));
    EXPECT_LE(step.micro_batch_seconds_of_all->at("min"), fastest);
  }
  EXPECT_EQ(kept.of<events::End>().at(0).busy_seconds_by_rank->size(), 18U) << "the end has all ranks";
}

TEST(Balance, SharesOfAnotherNumberAreAMistake) {
  class TooFew final : public MicroBatchBalancer {
    std::vector<int> balance(std::int64_t /*step*/, std::span<const RankLoad> /*ranks*/) override { return {3, 1}; }
  } balancer;
  TrainerOptions options;
  options.balancer = &balancer;
  try {
    (void)run_balanced(1, {}, options);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(), "step 1: expected a balancer that gives 16 micro-batches to 1 ranks, found [3, 1]");
  }
}

namespace {

const std::vector<std::string> kNapping = {"model.layers[2]=napping_relu", "threads=1", "steps=24"};

}  // namespace

// Rank 1 takes three times as long from step 8 on.
TEST(Balance, WorkMovesToTheFastRankAndTheBitsStay) {
  using std::chrono::milliseconds;
  const std::string undisturbed =
      run_balanced(1, kNapping, {}, [](int) { return with_naps([](auto...) { return milliseconds(0); }); });
  Events kept;
  TrainerOptions options;
  options.sink = &kept;
  auto overrides = kNapping;
  overrides.emplace_back("balance=auto");
  const std::string slowed = run_balanced(2, overrides, options, [](int rank) {
    return with_naps([rank](Mode, std::uint64_t step) { return milliseconds(rank == 1 && step >= 8 ? 18 : 6); });
  });
  EXPECT_EQ(slowed, undisturbed);
  const auto moves = kept.of<events::Balance>();
  ASSERT_GE(moves.size(), 1u);
  const auto end = kept.of<events::End>().at(0);
  const auto shares = end.micro_batches_by_rank;
  EXPECT_GT(shares.at(0), shares.at(1));
  EXPECT_EQ(end.bytes_sent_by_rank, end.bytes_by_formula_by_rank);
  const auto seconds = moves.back().micro_batch_seconds_by_rank.value();
  EXPECT_GT(seconds.at(1), seconds.at(0));
  EXPECT_LT(moves.back().predicted_seconds, moves.back().predicted_before_seconds);
}

// The probe at the start detects it.
TEST(Balance, TheFirstSharesFitRanksThatAreUneven) {
  Events kept;
  TrainerOptions options;
  options.sink = &kept;
  auto overrides = kNapping;
  overrides.insert(overrides.end(), {"balance=auto", "steps=1"});
  (void)run_balanced(2, overrides, options, [](int rank) {
    return with_naps([rank](auto...) { return std::chrono::milliseconds(rank == 1 ? 30 : 5); });
  });
  const auto moves = kept.of<events::Balance>();
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].step, 0);
  EXPECT_EQ(moves[0].reason, "a probe at the start");
  const auto shares = moves[0].shares_by_rank;
  EXPECT_GT(shares.at(0), shares.at(1));
}

// The second run knows from the first that rank 1 is slow, and probes nothing.
TEST(Balance, AResumedRunBeginsWithTheSharesThatWereFound) {
  const Folder folder;
  const auto uneven = [](int rank) {
    return with_naps([rank](auto...) { return std::chrono::milliseconds(rank == 1 ? 20 : 5); });
  };
  auto overrides = kNapping;
  overrides.insert(overrides.end(), {"balance=auto", "steps=6", "checkpoint={every: 3 steps}"});
  overrides.push_back("run_directory=" + folder.path());
  TrainerOptions options;
  options.stop_at = 3;
  (void)run_balanced(2, overrides, options, uneven);
  Events kept;
  options.stop_at = 0;
  options.sink = &kept;
  (void)run_balanced(2, overrides, options, uneven);
  const auto moves = kept.of<events::Balance>();
  ASSERT_GE(moves.size(), 1u);
  EXPECT_EQ(moves[0].reason, "speeds of the checkpoint");
  const auto shares = moves[0].shares_by_rank;
  EXPECT_GT(shares.at(0), shares.at(1));
}

// Eight layers of 256 features, the first of which reads 784 and gives its inputs no gradient: it costs as much as two
// of the others. Six layers are nearest to three quarters of the cost, three to half of it.
TEST(Balance, AModelIsCutByWeights) {
  const auto ends_of_parts = [](const std::string& balance) {
    Events kept;
    TrainerOptions options;
    options.sink = &kept;
    (void)run_balanced(
        2, {"model={mlp: {hidden: [256, 256, 256, 256, 256, 256, 256, 256]}}", "steps=1", "parallel.parts=2", balance},
        options, [](int) { return Registries::built_in(); }, {0, 1});
    std::vector<std::string> ends;
    for (const events::Part& part : kept.of<events::Part>()) ends.push_back(part.ranks + ": " + part.last);
    return ends;
  };
  using Ends = std::vector<std::string>;
  EXPECT_EQ(ends_of_parts("balance=equal"), (Ends{"0: linear3", "1: loss"}));
  EXPECT_EQ(ends_of_parts("balance={weights: {a: 3, b: 1}}"), (Ends{"0: relu6", "1: loss"}));
  EXPECT_EQ(ends_of_parts("balance={weights: {a: 1, b: 3}}"), (Ends{"1: linear6", "0: loss"}));
}

TEST(Balance, WeightsNameHostsOrProcessors) {
  Events kept;
  TrainerOptions options;
  options.sink = &kept;
  const std::string alone = run_balanced(1, {});
  const auto built_in = [](int) { return Registries::built_in(); };
  EXPECT_EQ(run_balanced(2, {"balance={weights: {a: 3, b: 1}}"}, options, built_in, {0, 1}), alone);
  EXPECT_EQ(kept.of<events::End>().at(0).micro_batches_by_rank, (events::ByRank{{0, 12}, {1, 4}}));
  try {
    (void)run_balanced(2, {"balance={weights: {a: 3, T1000: 1}}"}, {}, built_in, {0, 1});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_EQ(std::string(error.what()),
              "command line: balance.weights: expected a host or a processor of this run, found 'T1000'; the hosts "
              "are a, b; the processors are " +
                  device::cpu_info().model + " (a part of the name will do); correct the entry or leave it out");
  }
}

}  // namespace lockstep
