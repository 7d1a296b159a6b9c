// Disks that are full, read-only, gone or slow: training continues, the failure is reported, the next checkpoint is
// written.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "checkpoint/faulty_files.hpp"
#include "checkpoint/support.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/reports.hpp"
#include "run/checkpoint/run_directory.hpp"

namespace lockstep::checkpoint {

namespace {

namespace fs = std::filesystem;

WriterOptions keep_all(const std::string& directory) {
  WriterOptions options;
  options.directory = directory;
  options.part_bytes = SmallModel::kPart;
  return options;
}

/// Makes every call of this kind fail while `on`.
struct Broken {
  std::atomic<bool> on{false};
  FileCall::Kind kind{};
  std::string path_holds;  ///< only for paths that contain this; empty: all
  void into(FaultyFiles& files) {
    files.before = [this](const FileCall& call) {
      if (on && call.kind == kind && call.path.find(path_holds) != std::string::npos) {
        throw Error(ExitCode::infrastructure, call.path + ": cannot write: No space left on device");
      }
    };
  }
};

}  // namespace

TEST(CheckpointFailure, EveryKindOfCallMayFailAndTheNextCheckpointIsWritten) {
  using Kind = FileCall::Kind;
  for (const Kind kind :
       {Kind::create, Kind::write, Kind::sync, Kind::rename, Kind::make_directory, Kind::sync_directory}) {
    const Folder folder;
    FaultyFiles files;
    Broken broken;
    broken.kind = kind;
    broken.into(files);
    const auto alone = make_single_communicator();
    SmallModel model;
    CheckpointWriter writer(*alone, model.sources(), keep_all(folder / "c"), files);
    for (std::int64_t step = 1; step <= 3; ++step) {
      broken.on = step == 2;
      model.set(static_cast<float>(step));
      ASSERT_TRUE(writer.begin(progress_of(step), false));
      EXPECT_EQ(writer.finish().empty(), step != 2) << "kind " << static_cast<int>(kind);
    }
    const auto outcomes = writer.finished();
    ASSERT_EQ(outcomes.size(), 3u);
    EXPECT_TRUE(outcomes[1].failure.ends_with(": cannot write: No space left on device")) << outcomes[1].failure;
    EXPECT_EQ(outcomes[1].newest, folder / "c/step-00000001");
    EXPECT_TRUE(outcomes[2].failure.empty());
    const auto list = list_checkpoints(folder / "c");
    ASSERT_EQ(list.size(), 2u) << "kind " << static_cast<int>(kind);
    EXPECT_FALSE(fs::exists(folder / "c/step-00000002")) << "what was half written takes room";
    std::string why;
    EXPECT_TRUE(read_checkpoint(list.front(), why)) << why;
  }
}

TEST(CheckpointFailure, TheRankAndHostAreNamed) {
  const Folder folder;
  FaultyFiles files;
  Broken broken;
  broken.on = true;
  broken.kind = FileCall::Kind::write;
  broken.path_holds = "optimizer-00001";
  broken.into(files);
  run_in_threads(
      4,
      [&](Communicator& communicator) {
        SmallModel model;
        CheckpointWriter writer(communicator, model.sources(), keep_all(folder / "c"), files);
        ASSERT_TRUE(writer.begin(progress_of(1), false));
        const std::string failure = writer.finish();  // the same on every rank
        EXPECT_TRUE(failure.starts_with("rank ")) << failure;
        EXPECT_NE(
            failure.find(folder / "c/step-00000001/optimizer-00001-of-00002.safetensors.partial: cannot write: No "
                                  "space left on device"),
            std::string::npos)
            << failure;
        broken.on = false;
        ASSERT_TRUE(writer.begin(progress_of(2), false));
        EXPECT_EQ(writer.finish(), "");
      },
      {0, 0, 1, 1});
  EXPECT_EQ(list_checkpoints(folder / "c").size(), 1u);
}

TEST(CheckpointFailure, AVanishedDirectoryIsMadeAgain) {
  const Folder folder;
  const auto alone = make_single_communicator();
  SmallModel model;
  CheckpointWriter writer(*alone, model.sources(), keep_all(folder / "run/checkpoints"));
  ASSERT_TRUE(writer.begin(progress_of(1), false));
  ASSERT_EQ(writer.finish(), "");
  fs::remove_all(folder / "run");
  ASSERT_TRUE(writer.begin(progress_of(2), false));
  ASSERT_EQ(writer.finish(), "");
  EXPECT_EQ(list_checkpoints(folder / "run/checkpoints").size(), 1u);
}

TEST(CheckpointFailure, OldOnesThatCannotBeRemovedAreNoFailure) {
  const Folder folder;
  FaultyFiles files;
  Broken broken;
  broken.kind = FileCall::Kind::remove;
  broken.into(files);
  const auto alone = make_single_communicator();
  SmallModel model;
  auto options = keep_all(folder / "c");
  options.retention.keep = 1;
  CheckpointWriter writer(*alone, model.sources(), options, files);
  ASSERT_TRUE(writer.begin(progress_of(1), false));
  ASSERT_EQ(writer.finish(), "");
  broken.on = true;
  ASSERT_TRUE(writer.begin(progress_of(2), false));
  ASSERT_EQ(writer.finish(), "");
  const auto outcomes = writer.finished();
  EXPECT_TRUE(outcomes.at(1).failure.empty());
  EXPECT_FALSE(outcomes.at(1).warning.empty());
}

// Another launch owns the directory: what this one has begun there must not touch the other one's files of the same
// step.
TEST(CheckpointFailure, ALaunchThatHasLostTheDirectoryWritesAndRemovesNothing) {
  const Folder folder;
  std::ofstream(folder / kLaunchLock) << "first";
  const auto options = [&](const std::string& launch) {
    auto made = keep_all(folder / "checkpoints");
    made.may_write = [directory = folder.path(), launch] { require_launch(directory, launch); };
    return made;
  };
  FaultyFiles files;
  std::atomic<bool> take{false};
  const auto alone = make_single_communicator();
  SmallModel model;
  model.set(1);
  CheckpointWriter first(*alone, model.sources(), options("first"), files);
  CheckpointWriter second(*alone, model.sources(), options("second"));
  files.before = [&](const FileCall& call) {  // in the middle of the first one's step 2
    if (!take || call.kind != FileCall::Kind::sync_directory) return;
    take = false;
    std::ofstream(folder / kLaunchLock) << "second";
    ASSERT_TRUE(second.begin(progress_of(2), false));
    ASSERT_EQ(second.finish(), "");
  };
  ASSERT_TRUE(first.begin(progress_of(1), false));
  ASSERT_EQ(first.finish(), "");
  take = true;
  ASSERT_TRUE(first.begin(progress_of(2), false));
  const std::string message = folder.path() +
                              ": another launch has taken this directory (second): this one was cut off from it or "
                              "taken for lost, and writes nothing there any more; the other one continues the run";
  EXPECT_EQ(first.finish(), message);
  ASSERT_TRUE(first.begin(progress_of(3), false));
  EXPECT_EQ(first.finish(), message);
  const auto list = list_checkpoints(folder / "checkpoints");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_TRUE(list.front().ends_with("step-00000002"));
  EXPECT_FALSE(fs::exists(folder / "checkpoints/step-00000003"));
  std::string why;
  EXPECT_TRUE(read_checkpoint(list.front(), why)) << why;
}

// Back-pressure: while the disk is slow, the second begin() waits on every rank; files of two steps are never mixed.
TEST(CheckpointFailure, OneAtATime) {
  const Folder folder;
  FaultyFiles files;
  std::atomic<bool> hold{true};
  files.before = [&](const FileCall& call) {
    while (hold && call.kind == FileCall::Kind::sync) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  std::atomic<int> second_began{0}, first_began{0};
  run_in_threads(2, [&](Communicator& communicator) {
    SmallModel model;
    CheckpointWriter writer(communicator, model.sources(), keep_all(folder / "c"), files);
    ASSERT_TRUE(writer.begin(progress_of(1), false));  // returns while the files are not written
    ++first_began;
    std::jthread release;
    if (communicator.rank() == 0) {
      release = std::jthread([&] {
        while (first_began < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        EXPECT_EQ(second_began, 0);
        hold = false;
      });
    }
    ASSERT_TRUE(writer.begin(progress_of(2), false));
    ++second_began;
    EXPECT_EQ(writer.finish(), "");
  });
  int open = 0;  // the first file of step 2 comes after the manifest of step 1
  for (const auto& call : files.log()) {
    if (call.kind == FileCall::Kind::rename && call.to.ends_with("step-00000001/manifest.json")) open = 1;
    if (call.path.find("step-00000002") != std::string::npos) {
      EXPECT_EQ(open, 1) << call.path;
    }
  }
  EXPECT_EQ(list_checkpoints(folder / "c").size(), 2u);
}

// What counts is whether files are written, not how long all of them take.
TEST(CheckpointFailure, ARankThatWritesSlowlyIsAwaitedOneThatStandsStillIsNot) {
  using std::chrono::milliseconds;
  constexpr milliseconds kTimeout{2'000};
  run_in_threads(3, [&](Communicator& communicator) {
    const SmallModel model;
    const auto parts = plan_parts(model.sources(), SmallModel::kPart / 4, communicator.topology());
    WriteReports reports(communicator, parts);
    const int rank = communicator.rank();
    const auto hashes =
        static_cast<std::size_t>(std::accumulate(parts.begin(), parts.end(), 0, [&](int sum, auto& part) {
          return sum + (part.rank == rank ? 1 + static_cast<int>(part.pieces.size()) : 0);
        }));
    const WriteReport own{.rank = rank, .failure = "", .hashes = std::vector<HashText>(hashes)};
    if (rank == 0) {
      std::this_thread::sleep_for(kTimeout * 3 / 2);  // it writes files of its own first
      for (const auto& report : reports.receive(1, kTimeout)) EXPECT_EQ(report.failure, "");
      const auto second = reports.receive(2, kTimeout);
      ASSERT_EQ(second.size(), 2U);
      EXPECT_EQ(second[0].failure, "");
      EXPECT_EQ(second[1].rank, 2);
      EXPECT_EQ(second[1].failure, "it has written no file for 2 seconds");
    } else {
      for (int file = 0; file < 8; ++file) {
        std::this_thread::sleep_for(kTimeout / 6);
        if (rank == 1) reports.goes_on(1, milliseconds(0));
      }
      reports.send(1, own, kTimeout);
      if (rank == 1) reports.send(2, own, kTimeout);
    }
    communicator.barrier({"test", 0, milliseconds(60'000)});
  });
}

// A run that ends with an error waits for the checkpoint in progress.
TEST(CheckpointFailure, AnErrorWaitsForTheWrite) {
  const Folder folder;
  FaultyFiles files;
  files.before = [](const FileCall&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  EXPECT_THROW(run_in_threads(2,
                              [&](Communicator& communicator) {
                                SmallModel model;
                                model.set(5);
                                CheckpointWriter writer(communicator, model.sources(), keep_all(folder / "c"), files);
                                ASSERT_TRUE(writer.begin(progress_of(5), false));
                                throw Error(ExitCode::diverged, "the loss is nan");
                              }),
               Error);
  EXPECT_EQ(list_checkpoints(folder / "c").size(), 1u);
}

}  // namespace lockstep::checkpoint
