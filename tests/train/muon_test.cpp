// Muon in a run: which parameters are matrices, and that no bit depends on ranks, sharding, parts, or a stop.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "run/checkpoint/checkpoint.hpp"
#include "train/gpt_job.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

constexpr std::array kHosts = {0, 0, 1, 0};
const std::string kMuon = "optimizer={muon: {weight_decay: 0.1}}";

/// Parameters whose second moment has no use.
std::string matrices_of(const std::string& run, int step) {
  std::string why, names;
  const auto checkpoint = checkpoint::read_checkpoint(run + "/checkpoints/" + checkpoint::checkpoint_name(step), why);
  EXPECT_TRUE(checkpoint) << why;
  for (const auto& tensor : checkpoint->manifest.tensors) {
    constexpr std::string_view kSuffix = ":second_moment";
    if (!tensor.name.ends_with(kSuffix)) continue;
    std::vector<float> values(static_cast<std::size_t>(elements(tensor.shape)));
    checkpoint::load(*checkpoint, {{tensor.name, {tensor.shape, values}}});
    if (std::any_of(values.begin(), values.end(), [](float value) { return value != 0; })) continue;
    names += tensor.name.substr(0, tensor.name.size() - kSuffix.size()) + " ";
  }
  return names;
}

}  // namespace

TEST(MuonRun, MatricesAreWeightsOfAllLayersButTheLast) {
  const TextFile file;
  const Folder gpt, net;
  const std::string every = "checkpoint={every: 2 steps}";
  (void)run_job(file.in(kGpt), 1, {kMuon, every, "steps=2", "run_directory=" + gpt.path(), "model.gpt.layers=1"});
  EXPECT_EQ(matrices_of(gpt.path(), 2),
            "block1.qkv.weight block1.projection.weight block1.expand.weight block1.contract.weight ");
  (void)run_job(kResidualJob, 1, {kMuon, every, "steps=2", "run_directory=" + net.path()});
  EXPECT_EQ(matrices_of(net.path(), 2), "stem.weight conv2.weight ");
}

TEST(MuonRun, RanksShardingAndPartsChangeNoBit) {
  const TextFile file;
  for (const std::string& job : {file.in(kGpt), std::string(kResidualJob)}) {
    const Outcome whole = run_job(job, 1, {kMuon});
    EXPECT_NE(whole, run_job(job, 1, {"optimizer={adamw: {weight_decay: 0.1}}"}));
    for (const int ranks : {2, 3, 4}) {
      EXPECT_EQ(run_job(job, ranks, {kMuon, "threads=2"}), whole) << ranks << " ranks";
      EXPECT_EQ(run_job(job, ranks, {kMuon}, std::vector(kHosts.begin(), kHosts.begin() + ranks)), whole) << ranks;
      for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
        const std::string words = std::string("parallel.sharding=") + sharding;
        std::vector<int> hosts = {0, 1, 0, 1};
        hosts.resize(static_cast<std::size_t>(ranks));
        EXPECT_EQ(run_job(job, ranks, {kMuon, words, "bucket_bytes=1024"}, hosts), whole)
            << sharding << ", " << ranks << " ranks";
      }
    }
  }
  const Outcome whole = run_job(file.in(kGpt), 1, {kMuon});
  for (const int ranks : {2, 3}) {
    EXPECT_EQ(run_job(file.in(kGpt), ranks, {kMuon, "parallel.parts=2"}), whole) << ranks << " ranks";
    EXPECT_EQ(run_job(file.in(kGpt), ranks, {kMuon, "parallel.parts=2", "parallel.sharding=optimizer"}), whole)
        << ranks;
  }
}

TEST(MuonRun, NorDoesAStop) {
  const Outcome whole = run_job(kResidualJob, 1, {kMuon});
  const Folder folder;
  Outcome last;
  for (const auto& [ranks, stop] : {std::pair{2, 3}, {1, 5}, {3, 0}}) {
    TrainerOptions options;
    options.stop_at = stop;
    last =
        run_job(kResidualJob, ranks,
                {kMuon, "checkpoint={every: 1 step}", "parallel.sharding=optimizer", "run_directory=" + folder.path()},
                {}, options);
  }
  EXPECT_EQ(last, whole);
}

}  // namespace lockstep
