// The promise if ranks micro-batch the model's state: whichever rank stores and updates what, no bit changes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "core/digest.hpp"
#include "train/gpt_job.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// For each safetensors file below a folder, the hash of its bytes.
std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    files[fs::relative(entry.path(), folder).string()] = sha256(std::as_bytes(std::span(bytes)));
  }
  return files;
}

/// Ranks in turn on two hosts.
std::vector<int> two_hosts(int ranks) {
  std::vector<int> host_of;
  for (int rank = 0; rank < ranks; ++rank) host_of.push_back(rank % 2);
  return host_of;
}

/// By what ranks micro-batch, which is also in a test's name.
class ShardedModel : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static std::string sharded() { return std::string("parallel.sharding=") + GetParam(); }
};

}  // namespace

TEST_P(ShardedModel, ChangesNoBit) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    const Outcome whole = run_job(kResidualJob, 1, {"precision=" + precision});
    for (const int ranks : {1, 2, 3, 5, 8}) {
      const std::vector<int> host_of = ranks > 2 ? two_hosts(ranks) : std::vector<int>();
      EXPECT_EQ(run_job(kResidualJob, ranks, {"precision=" + precision, sharded()}, host_of), whole)
          << precision << ", " << ranks << " ranks";
    }
  }
}

// A weight with two uses, whose gradients are in separate buckets.
TEST_P(ShardedModel, NorDoesItOfAWeightThatIsUsedTwice) {
  const TextFile file;
  const std::string job = file.in(kGpt);
  const Outcome whole = run_job(job, 1, {});
  for (const int ranks : {2, 3, 4}) {
    EXPECT_EQ(run_job(job, ranks, {sharded()}), whole) << ranks << " ranks";
    EXPECT_EQ(run_job(job, ranks, {sharded(), "threads=2", "bucket_bytes=4096"}, two_hosts(ranks)), whole) << ranks;
  }
}

TEST_P(ShardedModel, NorDoHostsThreadsAndBuckets) {
  const Outcome whole = run_job(kResidualJob, 1, {});
  const std::vector<std::vector<int>> hosts = {{0, 1, 2, 3}, {0, 0, 1, 1}, {0, 1, 1, 1}, {0, 1, 0, 2}};
  for (const auto& host_of : hosts) {
    for (const char* bucket_bytes : {"bucket_bytes=1024", "bucket_bytes=1048576"}) {
      EXPECT_EQ(run_job(kResidualJob, 4, {sharded(), "threads=2", bucket_bytes}, host_of), whole) << bucket_bytes;
    }
  }
}

TEST_P(ShardedModel, NorDoOptimizersAndWhatIsFrozen) {
  for (const char* words : {"optimizer=sgd", "optimizer=adam", "optimizer=lars", "clip_norm=never",
                            "optimizer={lamb: {}, average: {decay: 0.8, start: 2 steps}}",
                            "optimizer={adafactor: {}, average: {decay: 0.8, start: 2 steps}}"}) {
    const std::vector<std::string> frozen = {words, "model.freeze=[stem*]"};
    const Outcome whole = run_job(kResidualJob, 1, frozen);
    EXPECT_EQ(run_job(kResidualJob, 3, {words, "model.freeze=[stem*]", sharded()}, {0, 0, 1}), whole) << words;
  }
}

TEST_P(ShardedModel, NorDoPartsBesideIt) {
  const TextFile file;
  const std::string job = file.in(kGpt);
  for (const std::string precision : {"fp32", "fp16"}) {
    const Outcome whole = run_job(job, 1, {"precision=" + precision});
    for (const int ranks : {2, 3, 5}) {
      const std::vector<std::string> words = {"precision=" + precision, "parallel.parts=2", sharded()};
      EXPECT_EQ(run_job(job, ranks, words), whole) << precision << ", " << ranks << " ranks";
      EXPECT_EQ(run_job(job, ranks, words, two_hosts(ranks)), whole) << precision << ", " << ranks << " ranks";
    }
  }
  const std::string trusted = "optimizer={lamb: {}, average: {decay: mean, every: 2 steps}}";
  const Outcome whole = run_job(job, 1, {trusted});
  for (const int ranks : {2, 3, 5}) {
    EXPECT_EQ(run_job(job, ranks, {trusted, "parallel.parts=2", sharded()}, two_hosts(ranks)), whole) << ranks;
  }
}

TEST_P(ShardedModel, NorDoesAStopAndAStartWithAnother) {
  const TextFile file;
  const Folder folder;
  const std::string job = file.in(kGpt);
  const Outcome whole = run_job(job, 1, {});
  const std::vector<std::pair<int, std::vector<std::string>>> placements = {
      {3, {sharded()}}, {2, {}}, {4, {sharded(), "parallel.parts=2"}}, {2, {sharded()}}, {1, {}}, {4, {sharded()}}};
  Outcome last;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    TrainerOptions options;
    options.stop_at = static_cast<std::int64_t>(i) + 1;
    std::vector<std::string> words = placements[i].second;
    words.insert(words.end(), {"checkpoint={every: 1 step}", "run_directory=" + folder.path()});
    last = run_job(job, placements[i].first, words, two_hosts(placements[i].first), options);
  }
  EXPECT_EQ(last, whole);
}

TEST_P(ShardedModel, CheckpointsHaveTheSameBytes) {
  const TextFile file;
  const Folder folder;
  const std::string job = file.in(kGpt);
  const auto write = [&](const std::string& name, int ranks, std::vector<std::string> words,
                         const std::vector<int>& host_of = {}) {
    words.insert(words.end(),
                 {"checkpoint={every: 3 steps, part_bytes: 32768}", "run_directory=" + folder.path() + name});
    (void)run_job(job, ranks, words, host_of);
    return files_in(folder.path() + name);
  };
  for (const std::string optimizer : {"adamw", "adafactor"}) {
    const std::string words = "optimizer=" + optimizer;
    const auto whole = write("/whole " + optimizer, 1, {words});
    ASSERT_GT(whole.size(), 4u);
    EXPECT_EQ(write("/two " + optimizer, 2, {words, sharded()}), whole);
    EXPECT_EQ(write("/hosts " + optimizer, 4, {words, sharded()}, {0, 1, 1, 2}), whole);
    EXPECT_EQ(write("/parts " + optimizer, 4, {words, sharded(), "parallel.parts=2"}), whole);
  }
}

TEST_P(ShardedModel, InitialWeightsAreReadByTheirOwners) {
  const TextFile file;
  const Folder folder;
  const std::string job = file.in(kGpt);
  (void)run_job(job, 1, {"checkpoint={every: 6 steps}", "run_directory=" + folder.path()});
  const std::string from = "initialize={from: " + folder.path() + "/checkpoints/step-00000006/model.safetensors}";
  const Outcome whole = run_job(job, 1, {from});
  EXPECT_EQ(run_job(job, 3, {from, sharded()}, {0, 1, 1}), whole);
}

// Slower ranks get fewer micro-batches, so that some micro-batches move.
TEST_P(ShardedModel, NorDoSharesThatMove) {
  const Outcome whole = run_job(kResidualJob, 1, {});
  EXPECT_EQ(run_job(kResidualJob, 3, {sharded(), "balance={weights: {a: 3, b: 1}}"}, {0, 0, 1}), whole);
}

INSTANTIATE_TEST_SUITE_P(All, ShardedModel, testing::Values("optimizer", "gradients", "parameters"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace lockstep
