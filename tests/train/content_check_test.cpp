// Data that are too large to be read at the start are compared before the first checkpoint.
#include "run/train/content_check.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "run/checkpoint/checkpoint.hpp"
#include "train/small_run.hpp"

namespace lockstep {
namespace {

constexpr std::uintmax_t kSize = std::uintmax_t{300} << 20;  // zeros, which occupy no disk space
constexpr std::streamoff kBetweenSpots = 123'456'790;        // not covered by the digest of the index

const bool kNoCache = setenv("LOCKSTEP_CACHE", "none", 1) == 0;  // each run reads the data itself

std::string make_tokens(const std::string& path) {
  std::ofstream(path).close();
  fs::resize_file(path, kSize);
  return path;
}

void change_byte(const std::string& path, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(kBetweenSpots);
  file.put(byte);
}

JobFile job_on(const std::string& tokens, const std::string& directory, std::vector<std::string> overrides = {}) {
  constexpr const char* kTokenJob = R"(
job:
  model: {layers: [{embedding: {vocabulary: 4, width: 4}}, {linear: {features: 4}}]}
  data: {train: {tokens: {path: tokens.bin, context: 8}}}
  batch_size: 8
  micro_batches: 4
  threads: 1
  steps: 4
  learning_rate: 0.1
  optimizer: sgd
  evaluate: never
  checkpoint: {every: 2 steps}
)";
  overrides.push_back("run_directory=" + directory);
  JobFile job = config::load_text(kTokenJob, "job.yaml", overrides, train::catalogue_of(Registries::built_in()), false);
  job.data.train.paths = {tokens};  // the same name on both hosts, for files that may differ
  return job;
}

std::map<std::string, std::string> metadata(const std::string& directory, std::int64_t step) {
  return checkpoint::open_checkpoint(directory + "/checkpoints/" + checkpoint::checkpoint_name(step))
      .manifest.progress.metadata;
}

/// Trains on two hosts of two ranks: the errors of the ranks, sorted, and how many of them read all of the data.
struct TwoHostsOutcome {
  std::vector<std::string> errors;
  int readers = 0;
};

TwoHostsOutcome train_on_two_hosts(const std::string& directory, const std::string& first, const std::string& second) {
  TwoHostsOutcome outcome;
  std::mutex mutex;
  const Registries registries = Registries::built_in();
  run_in_threads(4,
                 [&](Communicator& communicator) {
                   Events events;
                   TrainerOptions options;
                   options.sink = &events;
                   std::string error;
                   try {
                     (void)train_job(job_on(communicator.rank() < 2 ? first : second, directory), communicator,
                                     registries, options);
                   } catch (const Error& thrown) {
                     error = thrown.what();
                   }
                   const std::lock_guard lock(mutex);
                   if (!error.empty()) outcome.errors.push_back(error);
                   for (const auto& [rank, bytes] : events.last<events::End>().bytes_read_by_rank) {
                     outcome.readers += bytes >= kSize ? 1 : 0;
                   }
                 },
                 {0, 0, 1, 1});
  return outcome;
}

TEST(ContentCheck, OneRankOfEachHostReadsAllAndTheCheckpointKeepsTheHash) {
  ASSERT_TRUE(kNoCache);
  const Folder data, runs;
  const std::string first = make_tokens(data.path() + "/first"), second = make_tokens(data.path() + "/second");
  const TwoHostsOutcome same = train_on_two_hosts(runs.path(), first, second);
  EXPECT_EQ(same.errors, std::vector<std::string>{});
  EXPECT_EQ(same.readers, 2);
  EXPECT_EQ(metadata(runs.path(), 2).at("data_content").size(), 64U);
  EXPECT_EQ(metadata(runs.path(), 4), metadata(runs.path(), 2));
}

TEST(ContentCheck, AByteThatDiffersEndsTheRunBeforeItsFirstCheckpoint) {
  const Folder data, runs;
  const std::string first = make_tokens(data.path() + "/first"), second = make_tokens(data.path() + "/second");
  change_byte(second, 1);
  const TwoHostsOutcome differs = train_on_two_hosts(runs.path(), first, second);
  ASSERT_EQ(differs.errors.size(), 4U);
  for (const auto& error : differs.errors) {
    EXPECT_EQ(error.substr(0, error.find("expected")), "rank 2 on b: its content of data.train differs: ");
    EXPECT_TRUE(
        error.ends_with("; copy the same files to every host, and begin anew: steps of this run have seen "
                        "both"))
        << error;
  }
  EXPECT_EQ(checkpoint::list_checkpoints(runs.path() + "/checkpoints"), std::vector<std::string>{});
}

TEST(ContentCheck, AResumedRunFindsTheContentOfItsBeginning) {
  const Folder data, runs;
  const std::string tokens = make_tokens(data.path() + "/tokens");
  const Registries registries = Registries::built_in();
  TrainerOptions options;
  options.stop_at = 3;  // after the checkpoint of step 2
  (void)train_job(job_on(tokens, runs.path()), *make_single_communicator(), registries, options);
  change_byte(tokens, 1);
  const JobFile job = job_on(tokens, runs.path());
  try {
    (void)train_job(job, *make_single_communicator(), registries, {});
    FAIL() << "another content was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::other_data);
    EXPECT_EQ(error.what(), runs.path() +
                                ": the data set has the names and sizes of the one that this run began with, "
                                "but not its content; restore it, or choose a new run_directory");
  }
  EXPECT_EQ(checkpoint::list_checkpoints(runs.path() + "/checkpoints").front(),
            runs.path() + "/checkpoints/" + checkpoint::checkpoint_name(3));
  change_byte(tokens, 0);
  EXPECT_EQ(train_job(job, *make_single_communicator(), registries, {}).steps, 4);
}

TEST(ContentCheck, AStopDoesNotWaitForIt) {
  const Folder data, runs;
  TrainerOptions options;
  options.stop_at = 1;
  (void)train_job(job_on(make_tokens(data.path() + "/tokens"), runs.path()), *make_single_communicator(),
                  Registries::built_in(), options);
  EXPECT_EQ(metadata(runs.path(), 1).count("data_content"), 0U);
}

TEST(ContentCheck, WhatWasReadOnceIsKeptWithTheIndex) {
  const Folder data, cache;
  SourceOptions source = job_on(make_tokens(data.path() + "/tokens"), "runs").data.train;
  std::string digest;
  {
    const ReaderRegistry readers;
    input::SourceIndexes indexes(cache.path(), readers);
    const auto set = indexes.open("train", source, nullptr);
    EXPECT_EQ(indexes.large(), std::vector<std::string>{"train"});
    (void)indexes.keep();
    EXPECT_EQ(indexes.content("train", [](double) { return false; }), "");
    digest = indexes.content("train", [](double) { return true; });
    EXPECT_EQ(digest.size(), 64U);
  }
  const auto digest_again = [&](bool may_read) {
    const ReaderRegistry readers;
    input::SourceIndexes again(cache.path(), readers);
    const auto set = again.open("train", source, nullptr);
    return again.content("train", [&](double) { return may_read; });
  };
  EXPECT_EQ(digest_again(false), digest);
  change_byte(source.paths.front(), 1);
  EXPECT_EQ(digest_again(false), "");
  EXPECT_NE(digest_again(true), digest);
}

}  // namespace
}  // namespace lockstep
