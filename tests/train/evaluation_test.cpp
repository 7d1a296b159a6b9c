// Evaluation on several ranks: any shares give the same bits, they follow the ranks' speeds, a slow rank is not a hang,
// and the next evaluation's data are loaded while the run continues.
#include "run/train/evaluation.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "run/train/job_graph.hpp"
#include "step/exec/cpu_device.hpp"
#include "train/napping_relu.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

using std::chrono::milliseconds;
using Metrics = std::map<std::string, double>;

const std::vector<std::string> kNappingEvaluation = {
    "model.layers=[flatten, {linear: {features: 12}}, napping_relu, {linear: {features: 10}}]",
    "data.validation.digits.count=157",  // 40 micro-batches of 4; the last one has a single sample
    "threads=1", "steps=1", "checkpoint=never"};

JobFile job_with(const std::vector<std::string>& overrides, const Registries& registries) {
  return config::load_text(kJob, "job.yaml", overrides, train::catalogue_of(registries), false);
}

/// What one rank needs to evaluate; parameters have their initial values.
struct Rank {
  Rank(Communicator& communicator, const std::vector<std::string>& overrides, train::EvaluationOptions options = {})
      : registries(Registries::built_in()),
        job(job_with(overrides, registries)),
        data(input::learn(job.data, job.seed, job.batch_size, registries, {})),
        graph(train::make_job_graph(job, data, registries)),
        parameters(graph, graph.parameters),
        states(graph, graph.states),
        pool(1) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      exec::initialize(Initializer::normal(0.1), 7, parameters.name(i), parameters.at(i));
    }
    options.micro_batch_samples = job.batch_size / job.micro_batches;
    evaluation = std::make_unique<train::Evaluation>(graph, *data.validation, data.pipeline(*data.validation, false),
                                                     communicator, device, pool, options);
  }
  Metrics run() { return evaluation->run({parameters, states}, 1); }

  Registries registries;
  JobFile job;
  input::PreparedData data;
  Graph graph;
  exec::TensorBlock parameters, states;
  exec::CpuDevice device;
  exec::WorkerPool pool;
  std::unique_ptr<train::Evaluation> evaluation;
};

/// Trains on `ranks` ranks and returns the metrics of the last evaluation; `nap_of` gives each rank's naps.
Metrics train_with_naps(int ranks, std::vector<std::string> overrides, const std::function<Nap(int rank)>& nap_of,
                        const std::vector<int>& hosts = {}) {
  overrides.insert(overrides.begin(), kNappingEvaluation.begin(), kNappingEvaluation.end());
  std::mutex mutex;
  Metrics metrics;
  run_in_threads(
      ranks,
      [&](Communicator& communicator) {
        const Registries registries = with_naps(nap_of(communicator.rank()));
        const auto result = train_job(job_with(overrides, registries), communicator, registries);
        const std::lock_guard lock(mutex);
        if (!metrics.empty()) {
          EXPECT_EQ(result.metrics, metrics) << "ranks disagree";
        }
        metrics = result.metrics;
      },
      hosts);
  return metrics;
}

Nap no_naps(int /*rank*/) {
  return [](auto...) { return milliseconds(0); };
}

void wait_for(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(milliseconds(10));
  ASSERT_TRUE(holds()) << "not within a minute";
}

}  // namespace

TEST(Evaluation, AnySharesGiveTheBitsOfOneRank) {
  const std::vector<std::string> job = {
      "data.validation.digits.count=45"};  // 12 micro-batches of 4; the last one has one
  const Metrics alone = Rank(*make_single_communicator(), job).run();
  ASSERT_EQ(alone.size(), 2u);
  run_in_threads(3, [&](Communicator& communicator) {
    Rank rank(communicator, job);
    EXPECT_EQ(rank.evaluation->counts(), (std::vector<int>{4, 4, 4}));
    EXPECT_EQ(rank.run(), alone);
    for (const std::vector<int>& counts : std::vector<std::vector<int>>{{9, 1, 2}, {0, 0, 12}, {5, 7, 0}, {4, 4, 4}}) {
      rank.evaluation->use_counts(counts);
      EXPECT_EQ(rank.evaluation->counts(), counts);
      EXPECT_EQ(rank.run(), alone);
    }
  });
}

TEST(Evaluation, MetricsOfSeveralSumsHaveTheBitsOfOneRank) {
  const std::vector<std::vector<std::string>> jobs = {
      {"data.validation.digits.count=45",
       "metrics=[macro_precision, accuracy, macro_recall, macro_f1, mean_iou, perplexity]"},
      {"data.validation.digits.count=45", "metrics=[r2, rmse]", "model.inputs=image",
       "model.layers=[flatten, {linear: 784}, {reshape: [28, 28, 1]}]", "data.normalize=never",
       "loss={mean_squared_error: {}, target: image}"},
      {"data.train.digits.pairs=true", "data.validation={digits: {count: 45, first: 100000, pairs: true}}",
       "metrics=[auc, binary_accuracy]", "model.inputs=left", "model.layers=[flatten, {linear: 1}]",
       "loss=binary_cross_entropy"}};
  for (const auto& job : jobs) {
    const Metrics alone = Rank(*make_single_communicator(), job).run();
    run_in_threads(3, [&](Communicator& communicator) {
      Rank rank(communicator, job);
      for (const std::vector<int>& counts : std::vector<std::vector<int>>{{4, 4, 4}, {9, 1, 2}, {0, 0, 12}}) {
        rank.evaluation->use_counts(counts);
        EXPECT_EQ(rank.run(), alone);
        EXPECT_EQ(rank.run(), alone) << "nothing is left of the run before";
      }
    });
  }
}

TEST(Evaluation, LoadsAheadForTheNextOneAndHoldsNoBatch) {
  const auto alone = make_single_communicator();
  Rank rank(*alone, {"data.validation.digits.count=16"});  // 4 micro-batches, and at least 4 batches are prefetched
  const auto counters = [&] { return rank.evaluation->counters(); };
  for (int evaluations = 1; evaluations <= 3; ++evaluations) {
    wait_for([&] { return counters().ahead >= 4; });
    (void)rank.run();
    EXPECT_EQ(counters().made_by_caller, 0) << "all four had been loaded";
    EXPECT_EQ(counters().batches, 4 * evaluations);
    EXPECT_EQ(counters().held, 0);
  }
}

TEST(Evaluation, OfASingleOneNothingIsLoadedAheadAfterIt) {
  const auto alone = make_single_communicator();
  Rank rank(*alone, {"data.validation.digits.count=16"}, {.once = true});
  (void)rank.run();
  std::this_thread::sleep_for(milliseconds(200));  // long enough to load a whole second evaluation
  const auto counters = rank.evaluation->counters();
  EXPECT_EQ(counters.ahead, 0);
  EXPECT_EQ(counters.held, 0);
}

TEST(Evaluation, SharesFollowTheRanksSpeeds) {
  std::vector<std::atomic<int>> evaluated(2);
  const auto slow_second = [&](int rank) -> Nap {
    return [&evaluated, rank](Mode mode, std::uint64_t) {
      if (mode == Mode::inference) ++evaluated[static_cast<std::size_t>(rank)];
      return milliseconds(rank == 1 ? 80 : 10);
    };
  };
  const Metrics alone = train_with_naps(1, {}, no_naps);
  EXPECT_EQ(train_with_naps(2, {"balance=auto"}, slow_second), alone);
  EXPECT_EQ(evaluated[0] + evaluated[1], 40);
  EXPECT_GT(evaluated[0], 2 * evaluated[1]) << "an eighth of the speed";
}

TEST(Evaluation, SharesFollowWeights) {
  std::vector<std::atomic<int>> evaluated(3);
  const auto counted = [&](int rank) -> Nap {
    return [&evaluated, rank](Mode mode, std::uint64_t) {
      if (mode == Mode::inference) ++evaluated[static_cast<std::size_t>(rank)];
      return milliseconds(0);
    };
  };
  const Metrics alone = train_with_naps(1, {}, no_naps);
  EXPECT_EQ(train_with_naps(3, {"balance={weights: {a: 5, b: 3, c: 2}}"}, counted, {0, 1, 2}), alone);
  EXPECT_EQ(evaluated[0], 20);
  EXPECT_EQ(evaluated[1], 12);
  EXPECT_EQ(evaluated[2], 8);
}

// Rank 1 needs 8 s for its micro-batches, each of which takes 0.4 s, well within the timeout of 3 s.
TEST(Evaluation, ARankThatIsSlowerThanTheTimeoutIsNoHang) {
  const auto slow_second = [](int rank) -> Nap {
    return [rank](Mode mode, std::uint64_t) { return milliseconds(rank == 1 && mode == Mode::inference ? 400 : 0); };
  };
  const Metrics alone = train_with_naps(1, {}, no_naps);
  EXPECT_EQ(train_with_naps(2, {"balance=equal", "timeout=3"}, slow_second), alone);
}

}  // namespace lockstep
