// A stop request in the middle of an evaluation, or before the first step, is obeyed at once, and the runs that follow
// end as if there had been none: the same bits, the same evaluations, the same best checkpoint.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

#include "run/checkpoint/checkpoint.hpp"
#include "train/napping_relu.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

constexpr int kNever = -1;

const std::vector<std::string> kStoppedJob = {
    "model.layers=[flatten, {linear: {features: 12}}, napping_relu, {linear: {features: 10}}]",
    "data.validation.digits.count=157",  // 40 micro-batches of 4
    "threads=1",
    "steps=6",
    "evaluate.every=2 steps",
    "checkpoint={every: 3 steps, best: accuracy}",
    "learning_rate={peak: 0.5, schedule: {plateau: {factor: 0.5, patience: 1, min_delta: 100}}}"};

/// What the ranks of a run share.
struct Stop {
  int in_evaluation = kNever;  ///< in this one, counted from 0, a rank is asked to stop
  std::atomic<bool> asked{false};
  std::atomic<int> evaluations{0};  ///< complete ones
};

/// On one rank: passes on the request, and knows when the rank has been told of it.
class Watcher final : public RunWatcher {
 public:
  explicit Watcher(Stop& stop) : stop_(stop) {}
  void step_done(std::int64_t /*step*/) override {}
  [[nodiscard]] StopRequest stop_request() const override {
    if (!stop_.asked) return StopRequest::none;
    ++asked_;
    return StopRequest::now;
  }
  /// The first time that this rank is asked, all ranks hear of it before it is asked again.
  void wait_until_told() const {
    for (int i = 0; i < 6000 && asked_ < 2; ++i) std::this_thread::sleep_for(milliseconds(10));
    EXPECT_GE(asked_, 2) << "nobody has asked for a minute";
  }

 private:
  Stop& stop_;
  mutable std::atomic<int> asked_{0};
};

class CountingEvents final : public events::Sink {
 public:
  CountingEvents(Events& events, Stop& stop) : events_(events), stop_(stop) {}
  void event(const events::Event& event) override {
    events_.event(event);
    if (std::holds_alternative<events::Evaluation>(event)) ++stop_.evaluations;
  }

 private:
  Events& events_;
  Stop& stop_;
};

struct Ended {
  TrainResult result;
  std::vector<std::string> evaluations;  ///< as text
  int micro_batches = 0;                 ///< begun by all ranks in the evaluation that is stopped
};

std::string text_of(const events::Evaluation& evaluation) {
  std::string text = fmt::format("{}: {:a}", evaluation.step, evaluation.loss);
  for (const auto& [name, value] : evaluation.metrics) text += fmt::format(", {} {:a}", name, value);
  return text;
}

Ended train_once(const std::string& directory, int ranks, int parts, int stop_in, bool stop_at_start = false) {
  Stop stop;
  stop.in_evaluation = stop_in;
  stop.asked = stop_at_start;
  Ended ended;
  Events events;
  CountingEvents sink(events, stop);
  std::mutex mutex;
  std::atomic<int> micro_batches{0};
  run_in_threads(ranks, [&](Communicator& communicator) {
    Watcher watcher(stop);
    const Registries registries = with_naps([&](Mode mode, std::uint64_t /*step*/) {
      if (mode != Mode::inference || stop.evaluations != stop.in_evaluation) return milliseconds(0);
      stop.asked = true;
      ++micro_batches;
      watcher.wait_until_told();
      return milliseconds(0);
    });
    auto overrides = kStoppedJob;
    overrides.push_back("run_directory=" + directory);
    overrides.push_back("parallel.parts=" + std::to_string(parts));
    const JobFile job = config::load_text(kJob, "job.yaml", overrides, train::catalogue_of(registries), false);
    TrainerOptions options;
    options.sink = &sink;
    options.watcher = &watcher;
    const auto result = train_job(job, communicator, registries, options);
    const std::lock_guard lock(mutex);
    if (communicator.rank() == 0) ended.result = result;
  });
  for (const auto& evaluation : events.of<events::Evaluation>()) ended.evaluations.push_back(text_of(evaluation));
  ended.micro_batches = micro_batches;
  return ended;
}

std::string best_in(const std::string& directory) {
  std::ifstream file(directory + "/checkpoints/best");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST(Stop, InTheMiddleOfEvaluationsChangesNoBit) {
  const Folder undisturbed;
  const Ended expected = train_once(undisturbed.path(), 1, 1, kNever);
  ASSERT_EQ(expected.evaluations.size(), 3U);
  for (const auto& [ranks, parts] : std::vector<std::pair<int, int>>{{1, 1}, {3, 1}, {2, 2}}) {
    const Folder folder;
    std::vector<std::string> evaluations;
    const auto run = [&](int stop_in, bool interrupted, std::int64_t step) {
      const Ended ended = train_once(folder.path(), ranks, parts, stop_in);
      EXPECT_EQ(ended.result.interrupted, interrupted);
      EXPECT_EQ(ended.result.steps, step) << "no step may follow";
      EXPECT_LE(ended.micro_batches, ranks) << "no rank begins another micro-batch";
      evaluations.insert(evaluations.end(), ended.evaluations.begin(), ended.evaluations.end());
      return ended.result;
    };
    (void)run(0, true, 2);
    (void)run(0, true, 2);  // again in the same evaluation
    (void)run(1, true, 4);
    (void)run(1, true, 6);  // after the last step
    const TrainResult last = run(kNever, false, 6);
    EXPECT_EQ(evaluations, expected.evaluations) << ranks << " ranks, " << parts << " parts";
    EXPECT_EQ(last.parameters_sha256, expected.result.parameters_sha256);
    EXPECT_EQ(last.metrics, expected.result.metrics);
    EXPECT_EQ(best_in(folder.path()), best_in(undisturbed.path()));
    EXPECT_EQ(train_once(folder.path(), ranks, parts, kNever).evaluations.size(), 0U) << "nothing is due any more";
  }
}

TEST(Stop, BeforeTheFirstStepLeavesNothing) {
  for (const int ranks : {1, 3}) {
    const Folder folder;
    const Ended ended = train_once(folder.path(), ranks, 1, kNever, true);
    EXPECT_TRUE(ended.result.interrupted);
    EXPECT_EQ(ended.result.steps, 0);
    EXPECT_EQ(checkpoint::list_checkpoints(folder.path() + "/checkpoints").size(), 0U);
    EXPECT_EQ(train_once(folder.path(), ranks, 1, kNever).result.steps, 6);
  }
}

}  // namespace lockstep
