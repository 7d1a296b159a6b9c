// What a run writes for TensorBoard: without effect on a bit of the run. TensorBoard itself reads the files in
// tests/observability/tensorboard_test.py.
#include "observe/board.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/files.hpp"
#include "lockstep/error.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> found;
  if (!fs::exists(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

int count_of(const std::string& text, const std::string& in) {
  int count = 0;
  for (auto at = in.find(text); at != std::string::npos; at = in.find(text, at + 1)) ++count;
  return count;
}

}  // namespace

TEST(Board, ChangesNoBit) {
  const Folder with, without;
  Events events, quiet_events;
  const auto shown = run(with.path(), {"telemetry.tensorboard={histograms: 1 steps}", "clip_norm=0.5"}, events);
  const auto quiet = run(without.path(), {"clip_norm=0.5"}, quiet_events);
  EXPECT_EQ(shown.parameters_sha256, quiet.parameters_sha256);
  EXPECT_EQ(events.all.size(), quiet_events.all.size());  // they are passed on
  EXPECT_EQ(files_of(with.path() + "/tensorboard").size(), 1U);
  EXPECT_FALSE(fs::exists(without.path() + "/tensorboard"));
}

// Histograms of short epochs would be most of what a run of months writes.
TEST(Board, ShowsTheModelLessOftenTheLongerARunIs) {
  const Folder folder;
  Events events;
  (void)run(folder.path(),
            {"telemetry.tensorboard={histograms: 1 step, images: false}", "steps=1040", "evaluate=never",
             "checkpoint={every: 2000 steps}"},
            events);
  const auto files = files_of(folder.path() + "/tensorboard");
  ASSERT_EQ(files.size(), 1U);
  const auto bytes = read_whole_file(folder.path() + "/tensorboard/" + files.front()).value_or("");
  EXPECT_EQ(count_of("weights/linear1/bias", bytes), 512 + 256 + 4);
  EXPECT_EQ(count_of("train/loss", bytes), 1040 + 1) << "and once among the columns of hyper-parameters";
}

TEST(Board, NobodyNeedsToListenToTheRun) {
  const Folder folder;
  const Registries registries = Registries::built_in();
  const JobFile job =
      config::load_text(kJob, "job.yaml", {"run_directory=" + folder.path(), "steps=2", "telemetry.tensorboard=true"},
                        train::catalogue_of(registries), false);
  (void)train_job(job, *make_single_communicator(), registries, {});
  const auto files = files_of(folder.path() + "/tensorboard");
  ASSERT_EQ(files.size(), 1U);
  const auto bytes = read_whole_file(folder.path() + "/tensorboard/" + files.front()).value_or("");
  EXPECT_NE(bytes.find("train/loss"), std::string::npos);
  EXPECT_NE(bytes.find("brain.Event:2"), std::string::npos);
}

TEST(Board, EveryStartHasAFileThatSortsLast) {
  const Folder folder;
  Events events;
  std::string newest;
  for (const std::int64_t stop_at : {4, 8, 0}) {  // all within a second
    TrainerOptions options;
    options.stop_at = stop_at;
    (void)run(folder.path(), {"telemetry.tensorboard=true"}, events, options);
    const auto files = files_of(folder.path() + "/tensorboard");
    EXPECT_NE(files.back(), newest);
    newest = files.back();
  }
  EXPECT_EQ(files_of(folder.path() + "/tensorboard").size(), 3U);
}

TEST(Board, AFolderThatCannotBeMadeEndsTheRun) {
  const Folder folder;
  std::ofstream(folder.path() + "/tensorboard") << "a file";
  Events events;
  try {
    (void)run(folder.path(), {"telemetry.tensorboard=true"}, events);
    FAIL() << "nothing can be written there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::cannot_create);
    const std::string message = error.what();
    EXPECT_EQ(message.find(folder.path() + "/tensorboard/events.out.tfevents."), 0U) << message;
    EXPECT_NE(message.find(": cannot make TensorBoard's event file: Not a directory; name another run_directory, or "
                           "leave telemetry.tensorboard out"),
              std::string::npos)
        << message;
  }
}

TEST(Board, NamesAreFoldedAtTheirDots) {
  EXPECT_EQ(observe::path_name("stage1.block2.conv1"), "stage1/block2/conv1");
  EXPECT_EQ(observe::path_name("conv1"), "conv1");
}

}  // namespace lockstep
