// The power is cut after every single file-system call. What is loaded afterwards is a single complete state, not older
// than the last checkpoint that was reported as written.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "checkpoint/faulty_files.hpp"
#include "checkpoint/support.hpp"

namespace lockstep::checkpoint {

namespace {

WriterOptions keep_two(const std::string& directory) {
  WriterOptions options;
  options.directory = directory;
  options.best = best_checkpoint(directory);
  options.retention = {.keep = 2};
  options.part_bytes = SmallModel::kPart;
  return options;
}

/// The log says "begin N" before a checkpoint of step N, "safe N" once it was reported as written.
void train(Communicator& communicator, const std::string& directory, std::int64_t first, std::int64_t last,
           FaultyFiles& files) {
  SmallModel model;
  CheckpointWriter writer(communicator, model.sources(), keep_two(directory), files);
  for (std::int64_t step = first; step <= last; ++step) {
    model.set(static_cast<float>(step));
    if (communicator.rank() == 0) files.note("begin " + std::to_string(step));
    ASSERT_TRUE(writer.begin(progress_of(step), step == 2));
    model.set(-1);
    ASSERT_EQ(writer.finish(), "");
    if (communicator.rank() == 0) files.note("safe " + std::to_string(step));
  }
}

struct Found {
  std::int64_t step = 0;  ///< 0: nothing to load
  float value = 0;
};

Found load_newest(const std::string& directory) {
  std::string why;
  for (const auto& path : list_checkpoints(directory)) {
    const auto checkpoint = read_checkpoint(path, why);
    if (!checkpoint) continue;
    SmallModel model;
    load(*checkpoint, model.targets());
    return {checkpoint->manifest.progress.step, model.value()};
  }
  return {};
}

std::int64_t number_after(const std::string& text, const std::string& word) {
  return text.starts_with(word) ? std::stoll(text.substr(word.size())) : 0;
}

struct Tally {
  std::map<FileCall::Kind, int> points;
  int disks = 0, losses = 0;  ///< disks examined, and those that lack something that a mere kill would have left
};

/// For every prefix of the log: with all, none and some of what was not synced.
void cut_the_power(const std::vector<FileCall>& log, const std::string& root, const Folder& folder, Tally& tally) {
  const std::string disk = folder / "disk", directory = disk + "/run/checkpoints";
  std::int64_t safe = 0, begun = 0;
  for (std::size_t count = 1; count <= log.size(); ++count) {
    const FileCall& call = log[count - 1];
    if (call.kind == FileCall::Kind::note) {
      begun = std::max(begun, number_after(call.path, "begin "));
      safe = std::max(safe, number_after(call.path, "safe "));
      if (call.path == "aside 2") safe = begun = 2;
    }
    ++tally.points[call.kind];
    std::set<std::int64_t> found_steps;
    for (const auto& [loss, seed] : {std::pair{Loss::none, 0U},
                                     {Loss::all, 0U},
                                     {Loss::bytes, 0U},
                                     {Loss::random, 1U},
                                     {Loss::random, 2U},
                                     {Loss::random, 3U}}) {
      write_disk(log, count, loss, seed + 8 * static_cast<unsigned>(count), root, disk);
      const Found found = load_newest(directory);
      ++tally.disks;
      found_steps.insert(found.step);
      const bool some = found.step > 0;
      ASSERT_EQ(some ? found.value : 0, static_cast<float>(found.step)) << "a mixture, after call " << count;
      ASSERT_GE(found.step, safe) << "a checkpoint was lost, after call " << count << " " << call.path;
      ASSERT_LE(found.step, std::max<std::int64_t>(begun, 3));
      const std::string best = best_checkpoint(directory);
      if (safe >= 2) {
        std::string why;
        ASSERT_EQ(best, "step-00000002") << "after call " << count;
        ASSERT_TRUE(read_checkpoint(directory + "/" + best, why)) << why;
      }
    }
    tally.losses += found_steps.size() > 1 ? 1 : 0;
  }
}

void expect_many(const Tally& tally) {
  using Kind = FileCall::Kind;
  EXPECT_GE(tally.points.at(Kind::write), 20);
  EXPECT_GE(tally.points.at(Kind::sync), 20);
  EXPECT_GE(tally.points.at(Kind::rename), 20);
  EXPECT_GE(tally.points.at(Kind::sync_directory), 10);
  EXPECT_GE(tally.points.at(Kind::remove), 10);
  EXPECT_GE(tally.disks, 600);
  EXPECT_GT(tally.losses, 0) << "nothing was ever lost: the disk of this test forgets nothing";
  int points = 0;
  for (const auto& [kind, count] : tally.points) points += kind == Kind::note ? 0 : count;
  std::printf("power cut after each of %d calls: %d disks\n", points, tally.disks);
}

class CheckpointCrash : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root); }

  const Folder folder;
  FaultyFiles files;
  const std::string root = folder / "real", directory = root + "/run/checkpoints";
};

}  // namespace

TEST_F(CheckpointCrash, EveryCallOfOneRank) {
  const auto alone = make_single_communicator();
  train(*alone, directory, 1, 3, files);
  files.note("aside 2");  // --resume PATH of an older one: the later ones go
  set_aside(files, directory, 2);
  train(*alone, directory, 3, 5, files);
  Tally tally;
  cut_the_power(files.log(), root, folder, tally);
  expect_many(tally);
}

TEST_F(CheckpointCrash, EveryCallOfThreeRanks) {
  run_in_threads(3, [&](Communicator& communicator) { train(communicator, directory, 1, 5, files); });
  Tally tally;
  cut_the_power(files.log(), root, folder, tally);
  expect_many(tally);
}

// A control: without syncs this test must find mixtures or losses; otherwise it could never fail.
TEST_F(CheckpointCrash, WithoutSyncsTheTestFails) {
  const auto alone = make_single_communicator();
  train(*alone, directory, 1, 5, files);
  auto log = files.log();
  std::erase_if(log, [](const FileCall& call) { return call.kind == FileCall::Kind::sync_directory; });
  std::int64_t safe = 0;
  int lost = 0;
  for (std::size_t count = 1; count <= log.size(); ++count) {
    if (log[count - 1].kind == FileCall::Kind::note) safe = std::max(safe, number_after(log[count - 1].path, "safe "));
    write_disk(log, count, Loss::all, 0, root, folder / "disk");
    lost += load_newest(folder / "disk/run/checkpoints").step < safe ? 1 : 0;
  }
  EXPECT_GT(lost, 10);
}

}  // namespace lockstep::checkpoint
