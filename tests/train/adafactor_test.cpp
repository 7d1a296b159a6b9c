// Adafactor in a run: what it keeps, and that no bit depends on ranks, sharding, parts, or a stop.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "run/checkpoint/checkpoint.hpp"
#include "train/gpt_job.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

const std::string kAdafactor = "optimizer={adafactor: {weight_decay: 0.1}}";

}  // namespace

TEST(AdafactorRun, KeepsLittle) {
  const Folder folder;
  (void)run_job(kResidualJob, 2,
                {kAdafactor, "parallel.sharding=optimizer", "checkpoint={every: 2 steps}", "steps=2",
                 "run_directory=" + folder.path()});
  std::string why, found;
  const auto checkpoint =
      checkpoint::read_checkpoint(folder.path() + "/checkpoints/" + checkpoint::checkpoint_name(2), why);
  ASSERT_TRUE(checkpoint) << why;
  std::map<std::string, Shape> shapes;
  for (const auto& tensor : checkpoint->manifest.tensors) shapes[tensor.name] = tensor.shape;
  std::size_t states = 0;
  for (const auto& [name, shape] : shapes) {
    if (name.find(':') != std::string::npos || name.find("running") != std::string::npos) continue;
    if (shape.size() == 1) {
      EXPECT_EQ(shapes.at(name + ":second_moment"), shape) << name;
      EXPECT_FALSE(shapes.contains(name + ":row_moment")) << name;
      states += 1;
    } else {
      EXPECT_FALSE(shapes.contains(name + ":second_moment")) << name;
      EXPECT_EQ(shapes.at(name + ":row_moment"), Shape{shape.front()}) << name;
      EXPECT_EQ(shapes.at(name + ":column_moment"), Shape{elements(shape) / shape.front()}) << name;
      states += 2;
    }
  }
  EXPECT_GT(states, 6U);
}

TEST(AdafactorRun, RanksShardingAndPartsChangeNoBit) {
  const TextFile file;
  for (const std::string& job : {file.in(kGpt), std::string(kResidualJob)}) {
    const Outcome whole = run_job(job, 1, {kAdafactor});
    EXPECT_NE(whole, run_job(job, 1, {"optimizer={adamw: {weight_decay: 0.1}}"}));
    for (const int ranks : {2, 3, 4}) {
      EXPECT_EQ(run_job(job, ranks, {kAdafactor, "threads=2"}), whole) << ranks << " ranks";
      for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
        const std::string words = std::string("parallel.sharding=") + sharding;
        std::vector<int> hosts = {0, 1, 0, 1};
        hosts.resize(static_cast<std::size_t>(ranks));
        EXPECT_EQ(run_job(job, ranks, {kAdafactor, words, "bucket_bytes=1024"}, hosts), whole)
            << sharding << ", " << ranks << " ranks";
      }
    }
  }
  const Outcome whole = run_job(file.in(kGpt), 1, {kAdafactor});
  for (const int ranks : {2, 3}) {
    EXPECT_EQ(run_job(file.in(kGpt), ranks, {kAdafactor, "parallel.parts=2"}), whole) << ranks << " ranks";
    EXPECT_EQ(run_job(file.in(kGpt), ranks, {kAdafactor, "parallel.parts=2", "parallel.sharding=optimizer"}), whole)
        << ranks;
  }
}

// Written by ranks that divide the model, or its state, and read by others.
TEST(AdafactorRun, NorDoesAStop) {
  const TextFile file;
  for (const std::string& job : {file.in(kGpt), std::string(kResidualJob)}) {
    const Outcome whole = run_job(job, 1, {kAdafactor});
    const Folder folder;
    Outcome last;
    for (const auto& [ranks, stop, words] : {std::tuple{2, 1, "parallel.sharding=optimizer"},
                                             {1, 2, "parallel.sharding=none"},
                                             {3, 3, "parallel={parts: 2, sharding: parameters}"},
                                             {3, 0, "parallel.sharding=gradients"}}) {
      TrainerOptions options;
      options.stop_at = stop;
      last = run_job(job, ranks, {kAdafactor, "checkpoint={every: 1 step}", words, "run_directory=" + folder.path()},
                     {}, options);
    }
    EXPECT_EQ(last, whole);
  }
}

}  // namespace lockstep
