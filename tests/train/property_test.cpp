// Property: a training run gives the same bits, and sends the bytes of the formula, for any number of ranks, hosts and
// threads, any size of buckets, and any changes of shares during the run.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <exception>
#include <mutex>

#include "config/config.hpp"
#include "lockstep/trainer.hpp"
#include "run/train/catalogue.hpp"
#include "seeds.hpp"
#include "train/small_run.hpp"

namespace lockstep {
namespace {

constexpr unsigned kSeeds = 12;
constexpr int kWays = 3;
constexpr int kSteps = 6;

// What the result depends on.
struct Problem {
  std::string job;
  int micro_batches = 1;
};

// Small nets of odd sizes.
Problem random_problem(std::mt19937& random) {
  const int micro_batches = between(random, 1, 20);
  std::string layers;
  if (random() % 2 == 0) {
    layers += fmt::format("{{conv: {{filters: {}, kernel: 3, bias: false}}}}, ", between(random, 1, 7));
    if (random() % 2 == 0) layers += "batch_norm, ";
    layers += "relu, {max_pool: {kernel: 4}}, ";
  }
  layers += "flatten, ";
  if (random() % 2 == 0) layers += fmt::format("{{linear: {{features: {}}}}}, relu, ", between(random, 1, 97));
  if (random() % 2 == 0) layers += "{dropout: 0.2}, ";
  layers += "{linear: {features: 10}}";
  const int batch = micro_batches * between(random, 1, 4);
  const std::vector<std::string> optimizers = {"adam", "{adamw: {weight_decay: 0.01}}", "{sgd: {momentum: 0.9}}"};
  return {fmt::format(R"(
job:
  seed: {}
  model: {{layers: [{}]}}
  data: {{train: {{digits: {{count: {}}}}}}}
  batch_size: {}
  micro_batches: {}
  steps: {}
  optimizer: {}
  learning_rate: 0.01
  clip_norm: {}
  balance: equal
  evaluate: never
  checkpoint: never
)",
                      between(random, 0, 1000), layers, 3 * batch, batch, micro_batches, kSteps,
                      one_of(random, optimizers), one_of(random, std::vector<std::string>{"0.1", "1000"})),
          micro_batches};
}

// A configuration that computes it.
struct Way {
  int ranks = 1;
  std::vector<int> hosts;
  std::vector<std::string> overrides;
  std::vector<std::vector<int>> shares;  ///< requested after each step; empty: no change
  [[nodiscard]] std::string text() const {
    return fmt::format("{} ranks on hosts {}, {}, shares asked for after each step: {}", ranks, hosts,
                       fmt::join(overrides, " "), shares);
  }
};

Way random_way(std::mt19937& random, int micro_batches) {
  Way way;
  way.ranks = between(random, 1, std::min(micro_batches, 5));
  way.hosts = random_hosts(random, way.ranks, 3);
  way.overrides = {fmt::format("threads={}", between(random, 1, 3)),
                   fmt::format("bucket_bytes={}", one_of(random, std::vector<int>{64, 1'000, 4'096, 1'000'000}))};
  for (int step = 0; step < kSteps; ++step) {
    const bool changes = random() % 3 != 0;
    way.shares.push_back(changes ? random_counts(random, micro_batches, way.ranks) : std::vector<int>{});
  }
  return way;
}

/// What it requests after each step is given in advance.
class PlannedShares final : public MicroBatchBalancer {
 public:
  explicit PlannedShares(const std::vector<std::vector<int>>& shares) : shares_(shares) {}
  std::vector<int> balance(std::int64_t step, std::span<const RankLoad> /*ranks*/) override {
    return shares_.at(static_cast<std::size_t>(step - 1));
  }

 private:
  const std::vector<std::vector<int>>& shares_;
};

struct WayOutcome {
  std::string sha256;  ///< from rank 0, if all ranks have the same
  std::string wrong;   ///< empty: nothing
  int moves = 0;
};

WayOutcome run_way(const Problem& problem, const Way& way) {
  const Registries registries = Registries::built_in();
  Events events;
  TrainerOptions options;
  options.sink = &events;
  PlannedShares balancer(way.shares);
  options.balancer = &balancer;
  std::mutex mutex;
  std::vector<std::string> hashes(static_cast<std::size_t>(way.ranks));
  try {
    const JobFile job =
        config::load_text(problem.job, "job.yaml", way.overrides, train::catalogue_of(registries), false);
    run_in_threads(
        way.ranks,
        [&](Communicator& communicator) {
          const TrainResult result = train_job(job, communicator, registries, options);
          const std::lock_guard lock(mutex);
          hashes[static_cast<std::size_t>(communicator.rank())] = result.parameters_sha256;
        },
        way.hosts);
  } catch (const std::exception& error) {
    return {"", error.what(), 0};
  }
  WayOutcome outcome{hashes[0], "", events.count<events::Balance>()};
  for (const auto& hash : hashes) {
    if (hash != hashes[0]) outcome.wrong = fmt::format("ranks end with different parameters: {}", hashes);
  }
  const auto end = events.last<events::End>();
  const auto &sent = end.bytes_sent_by_rank, &formula = end.bytes_by_formula_by_rank;
  if (sent != formula) outcome.wrong = fmt::format("bytes sent by rank: expected {}, found {}", formula, sent);
  if (end.share_moves != outcome.moves && way.ranks > 1) outcome.wrong = "share_moves is not their count";
  return outcome;
}

TEST(TrainingProperty, OneHashAndTheBytesOfTheFormulaInAnyWay) {
  int moves = 0;
  for (const unsigned seed : seeds(kSeeds)) {
    std::mt19937 random(seed);
    const Problem problem = random_problem(random);
    const WayOutcome alone = run_way(problem, {1, {0}, {"threads=1"}, std::vector<std::vector<int>>(kSteps)});
    for (int i = 0; i < kWays; ++i) {
      const Way way = random_way(random, problem.micro_batches);
      const WayOutcome outcome = run_way(problem, way);
      const auto where = [&] {
        return fmt::format("seed {}, way {}: {}\n{}  {}", seed, i, way.text(), problem.job, rerun(seed, "train_test"));
      };
      ASSERT_EQ(outcome.wrong, "") << where();
      ASSERT_EQ(outcome.sha256, alone.sha256) << where();
      moves += outcome.moves;
    }
  }
  if (seeds(kSeeds).size() == kSeeds) {
    EXPECT_GE(moves, 2 * static_cast<int>(kSeeds)) << "shares hardly changed";
  }
}

// Controls: violations that the property must detect, and that its problems indeed train.
TEST(TrainingProperty, SeesAnotherAssociationAndAnotherCutOfTheBatch) {
  std::mt19937 random(1);
  Problem problem;
  while (problem.micro_batches != 16) problem = random_problem(random);
  const std::vector<std::vector<int>> still(kSteps);
  const WayOutcome alone = run_way(problem, {1, {0}, {}, still});
  EXPECT_EQ(run_way(problem, {3, {0, 0, 1}, {}, still}).sha256, alone.sha256);
  EXPECT_NE(run_way(problem, {3, {0, 0, 1}, {"exact=never"}, still}).sha256, alone.sha256);
  EXPECT_NE(run_way(problem, {1, {0}, {"micro_batches=8"}, still}).sha256, alone.sha256);
  EXPECT_NE(run_way(problem, {1, {0}, {fmt::format("steps={}", kSteps - 1)}, still}).sha256, alone.sha256);
}

}  // namespace
}  // namespace lockstep
