// Groups of parameters that are frozen at first, in a run: what they and the others become, and that no bit depends on
// ranks, sharding, parts, or a stop before, at and after the step where one is unfrozen.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "run/checkpoint/checkpoint.hpp"
#include "train/gpt_job.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

const std::string kTwoLayers = "model.layers=[flatten, {linear: {features: 12}}, tanh, {linear: {features: 10}}]";

std::vector<float> saved(const std::string& run, int step, const std::string& name) {
  const auto checkpoint = checkpoint::open_checkpoint(run + "/checkpoints/" + checkpoint::checkpoint_name(step));
  for (const auto& tensor : checkpoint.manifest.tensors) {
    if (tensor.name != name) continue;
    std::vector<float> values(static_cast<std::size_t>(elements(tensor.shape)));
    checkpoint::load(checkpoint, {{name, {tensor.shape, values}}});
    return values;
  }
  ADD_FAILURE() << "no " << name << " in step " << step;
  return {};
}

std::string frozen_groups(const std::string& optimizer, const std::string& of) {
  return "optimizer={" + optimizer + ": {}, groups: " + of + "}";
}

}  // namespace

// Four steps are an epoch. The gradient of a step follows from the first moment that the optimizer has saved.
TEST(FreezeUntil, AGroupBeginsWithAdamsFirstStep) {
  const Folder folder, frozen;
  Events events;
  const std::string every = "checkpoint={every: 1 step, keep: 100}", name = "linear1.weight";
  (void)run(folder.path(),
            {kTwoLayers, every, frozen_groups("adam", "[{match: linear1.*, rate: 0.5, freeze_until: 1.25 epochs}]")},
            events);
  (void)run(frozen.path(), {kTwoLayers, every, "model.freeze=linear1.*", "steps=5"}, events);
  const std::vector<float> first = saved(frozen.path(), 1, name);
  for (int step = 1; step <= 5; ++step) {
    EXPECT_EQ(saved(folder.path(), step, name), first) << step;
    const auto moment = saved(folder.path(), step, name + ":first_moment");
    EXPECT_EQ(moment, std::vector<float>(moment.size())) << step;
    EXPECT_EQ(saved(folder.path(), step, "linear2.weight"), saved(frozen.path(), step, "linear2.weight")) << step;
  }
  std::vector<double> m(first.size()), v(first.size());
  std::size_t moved = 0;
  for (int t = 1; t <= 3; ++t) {
    const auto before = saved(folder.path(), 4 + t, name), after = saved(folder.path(), 5 + t, name),
               moment = saved(folder.path(), 5 + t, name + ":first_moment");
    for (std::size_t i = 0; i < first.size(); ++i) {
      const double gradient = (static_cast<double>(moment[i]) - 0.9 * m[i]) / 0.1;
      m[i] = static_cast<double>(moment[i]);
      v[i] = 0.999 * v[i] + 0.001 * gradient * gradient;
      const double step = 0.005 * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
      EXPECT_NEAR(static_cast<double>(after[i]), static_cast<double>(before[i]) - step, 2e-6) << t << ", " << i;
      if (after[i] != before[i]) ++moved;
    }
  }
  EXPECT_GT(moved, first.size());
}

TEST(FreezeUntil, RanksShardingAndPartsChangeNoBit) {
  const TextFile file;
  const std::string
      nets =
          "[{match: [stem.*, batch_norm1.*], freeze_until: 3 steps}, {match: linear1.*, freeze_until: "
          "1 step}]",
      gpts = "[{match: [tokens.*, block1.*], freeze_until: 3 steps}, {match: block3.*, freeze_until: 1 step}]";
  for (const char* optimizer : {"adamw", "lamb", "muon", "adafactor"}) {
    for (const auto& [job, groups] : {std::pair{file.in(kGpt), gpts}, std::pair{std::string(kResidualJob), nets}}) {
      const std::string words = frozen_groups(optimizer, groups);
      const Outcome whole = run_job(job, 1, {words});
      EXPECT_NE(whole, run_job(job, 1, {std::string("optimizer=") + optimizer}));
      EXPECT_EQ(run_job(job, 3, {words, "threads=2"}), whole) << optimizer;
      for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
        const std::string how = std::string("parallel.sharding=") + sharding;
        EXPECT_EQ(run_job(job, 4, {words, how, "bucket_bytes=1024"}, {0, 1, 0, 1}), whole) << optimizer << ", " << how;
      }
    }
    const std::string words = frozen_groups(optimizer, gpts);
    const Outcome whole = run_job(file.in(kGpt), 1, {words});
    EXPECT_EQ(run_job(file.in(kGpt), 3, {words, "parallel.parts=2"}), whole) << optimizer;
    EXPECT_EQ(run_job(file.in(kGpt), 3, {words, "parallel={parts: 2, sharding: optimizer}"}), whole) << optimizer;
  }
}

// Stops before, at and behind the third step, with an average of the weights and adapters.
TEST(FreezeUntil, NorDoesAStop) {
  const TextFile file;
  const std::string groups = "[{match: [tokens.*, block1.*], freeze_until: 3 steps}]";
  const std::string adapters = "[{match: '*lora_a*', freeze_until: 3 steps}]";
  for (const auto& [words, lora] : {std::pair{frozen_groups("adamw", groups), "seed=1"},
                                    {"optimizer={lamb: {}, average: 0.5, groups: " + groups + "}", "seed=1"},
                                    {frozen_groups("muon", groups), "seed=1"},
                                    {frozen_groups("adafactor", groups), "seed=1"},
                                    {frozen_groups("adamw", adapters), "model.lora={rank: 2, layers: 'block*.qkv'}"}}) {
    const Outcome whole = run_job(file.in(kGpt), 1, {words, lora});
    for (const int at : {2, 3, 4}) {
      const Folder folder;
      Outcome last;
      for (const auto& [ranks, stop, how] :
           {std::tuple{2, at, "parallel.sharding=optimizer"}, {3, 0, "parallel.sharding=none"}}) {
        TrainerOptions options;
        options.stop_at = stop;
        last = run_job(file.in(kGpt), ranks,
                       {words, lora, how, "checkpoint={every: 1 step}", "run_directory=" + folder.path()}, {}, options);
      }
      EXPECT_EQ(last, whole) << words << ", " << at;
    }
  }
}

TEST(FreezeUntil, ARunThatEndsBeforeSaysSo) {
  const Folder folder;
  Events events;
  (void)run(folder.path(), {kTwoLayers, frozen_groups("adam", "[{match: linear1.*, freeze_until: 12 steps}]")}, events);
  const auto warnings = events.of<events::Warning>();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings.front().message,
            "command line: optimizer.groups[0]: freeze_until: 12 steps: the run ends by then, so the group is never "
            "trained");
  EXPECT_EQ(saved(folder.path(), 12, "linear1.weight"), saved(folder.path(), 4, "linear1.weight"));
}

}  // namespace lockstep
