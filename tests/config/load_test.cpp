// What a job file becomes: every section once, the short forms, defaults, shards, the canonical form.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"

namespace lockstep::config {
namespace {

Job read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return load_text(text, "job.yaml", overrides, test_catalogue(), false);
}

const std::string kSmall = "job: {model: lenet, data: {train: digits}, epochs: 1}\n";

TEST(Load, TheDefaultJobIsTheDigits) {
  const Job job = default_job({}, test_catalogue());
  EXPECT_EQ(job.name, "digits");
  EXPECT_EQ(job.data.train.kind, "digits");
  EXPECT_EQ(job.data.train.count, 12000);
  ASSERT_TRUE(job.data.validation);
  EXPECT_EQ(job.data.validation->first, 1000000);
  EXPECT_EQ(job.batch_size % job.shards, 0);
  EXPECT_EQ(job.model.layers.back().op, "linear");
  EXPECT_EQ(job.model.layers.back().attributes.integer("features"), 10);
  EXPECT_EQ(job.digest.size(), 64u);
}

TEST(Load, SmallestJobHasDefaults) {
  const Job job = read(kSmall);
  EXPECT_EQ(job.name, "job");
  EXPECT_EQ(job.run_directory, "runs/job");
  EXPECT_EQ(job.batch_size, 64);
  EXPECT_EQ(job.shards, 32);
  EXPECT_EQ(job.epochs, 1);
  EXPECT_EQ(job.steps, 0);
  EXPECT_EQ(job.loss.kind, "cross_entropy");
  EXPECT_EQ(job.loss.attributes.number("label_smoothing"), 0);
  EXPECT_EQ(job.optimizer.kind, "sgd");
  EXPECT_EQ(job.learning_rate.schedule, "constant");
}

}  // namespace
}  // namespace lockstep::config
