// The average of the weights: it follows its formula from checkpoint to checkpoint, is what validation and everybody
// after it sees, and no bit of it, or of training, depends on ranks, sharding, or a stop in between.
#include <gtest/gtest.h>

#include "lockstep/trained_model.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "step/optim/weight_average.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

const std::string kEmaOfTheJob = "optimizer={adam: {}, average: 0.75}";

std::vector<float> tensor_of(const std::string& run, int step, const std::string& name) {
  std::string why;
  const auto checkpoint = checkpoint::read_checkpoint(run + "/checkpoints/" + checkpoint::checkpoint_name(step), why);
  EXPECT_TRUE(checkpoint) << why;
  for (const auto& tensor : checkpoint->manifest.tensors) {
    if (tensor.name != name) continue;
    std::vector<float> values(static_cast<std::size_t>(elements(tensor.shape)));
    checkpoint::load(*checkpoint, {{name, {tensor.shape, values}}});
    return values;
  }
  ADD_FAILURE() << "no " << name << " in step " << step;
  return {};
}

EvaluationResult evaluated(const std::string& run, const std::vector<std::string>& overrides) {
  const Registries registries = Registries::built_in();
  const auto alone = make_single_communicator();
  return TrainedModel(load_job(run, overrides, registries, false), "newest", registries, *alone).evaluate("validation");
}

/// Runs the job, and expects the average of each checkpoint to follow from its parameters.
void follow(const std::string& optimizer, const std::function<float(int step, int taken)>& weight) {
  const Folder folder;
  Events events;
  run(folder.path(), {optimizer, "checkpoint={every: 1 step, keep: 100}"}, events);
  std::vector<float> average(tensor_of(folder.path(), 1, "linear1.weight").size());
  int taken = 0;
  for (int step = 1; step <= 12; ++step) {
    const float share = weight(step, taken);
    if (share > 0) ++taken;
    const auto parameters = tensor_of(folder.path(), step, "linear1.weight");
    for (std::size_t i = 0; i < average.size(); ++i) average[i] += share * (parameters[i] - average[i]);
    EXPECT_EQ(tensor_of(folder.path(), step, "linear1.weight:average"), average) << optimizer << ", step " << step;
  }
}

}  // namespace

TEST(Average, FollowsItsFormula) {
  follow(kEmaOfTheJob, [](int /*step*/, int taken) { return taken == 0 ? 1.0F : 0.25F; });
  follow("optimizer={adam: {}, average: {decay: mean, start: 1 epoch, every: 2 steps}}", [](int step, int taken) {
    return step < 4 || step % 2 != 0 ? 0 : static_cast<float>(1 / static_cast<double>(taken + 1));
  });
}

TEST(Average, IsNotTakenBeforeItsStart) {
  const AverageOptions options{.decay = 0.9, .start = {10, false}, .every = {5, false}};
  EXPECT_EQ(optim::average_weight(options, 100, 9, 0), 0);
  EXPECT_EQ(optim::average_weight(options, 100, 10, 0), 1);
  EXPECT_EQ(optim::average_weight(options, 100, 12, 1), 0);
  EXPECT_NEAR(optim::average_weight(options, 100, 15, 1), 0.1, 1e-15);
  EXPECT_EQ(optim::average_weight({.decay = 0, .start = {2, true}}, 100, 203, 3), 0.25);
}

TEST(Average, IsEvaluatedUnlessTheJobSaysOtherwise) {
  const Folder folder, trained_folder, plain_folder;
  Events events;
  const TrainResult of_average = run(folder.path(), {kEmaOfTheJob}, events);
  const TrainResult trained =
      run(trained_folder.path(), {"optimizer={adam: {}, average: {decay: 0.75, evaluate: false}}"}, events);
  const TrainResult plain = run(plain_folder.path(), {}, events);
  EXPECT_EQ(of_average.parameters_sha256, plain.parameters_sha256);
  EXPECT_EQ(trained.metrics, plain.metrics);
  EXPECT_NE(of_average.metrics, plain.metrics);
  EXPECT_EQ(evaluated(folder.path(), {}).metrics, of_average.metrics);
  EXPECT_EQ(evaluated(folder.path(), {"optimizer.average.evaluate=false"}).metrics, plain.metrics);
  EXPECT_EQ(evaluated(trained_folder.path(), {"optimizer.average.evaluate=true"}).metrics, of_average.metrics);
}

// Frozen parameters are their own average: the model with it is complete.
TEST(Average, OfFrozenParametersIsTheirValue) {
  const Folder folder;
  Events events;
  run(folder.path(), {kEmaOfTheJob, "model.freeze=[linear1.bias]"}, events);
  EXPECT_EQ(tensor_of(folder.path(), 12, "linear1.bias:average"), tensor_of(folder.path(), 12, "linear1.bias"));
}

TEST(Average, RanksAndStopsChangeNoBit) {
  const std::string average = "optimizer={adamw: {}, average: {decay: 0.8, start: 2 steps}}";
  const Outcome whole = run_job(kResidualJob, 1, {average});
  for (const int ranks : {2, 3, 8}) EXPECT_EQ(run_job(kResidualJob, ranks, {average}), whole) << ranks << " ranks";
  for (const char* sharding : {"none", "optimizer", "parameters"}) {
    const Folder folder;
    Outcome last;
    for (const auto& [ranks, stop] : {std::pair{2, 3}, {1, 5}, {3, 0}}) {
      TrainerOptions options;
      options.stop_at = stop;
      last = run_job(kResidualJob, ranks,
                     {average, std::string("parallel.sharding=") + sharding, "checkpoint={every: 1 step}",
                      "run_directory=" + folder.path()},
                     {}, options);
    }
    EXPECT_EQ(last, whole) << sharding;
  }
}

}  // namespace lockstep
