// Files of the data that change while a run reads them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/time.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>

#include "run/checkpoint/checkpoint.hpp"
#include "train/small_run.hpp"

namespace lockstep {
namespace {

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// As a program does that keeps the old file until the new one is written.
void replace_text(const std::string& path, const std::string& text) {
  write_text(path + ".new", text);
  fs::rename(path + ".new", path);
}

std::string rows() {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 16; ++i) text += fmt::format("{},{},{}\n", i, (i * 7) % 5, i % 3);
  return text;
}

/// Changes the files on rank 0 after step 3.
class ChangesFiles final : public Callback {
 public:
  explicit ChangesFiles(std::function<void()> change) : change_(std::move(change)) {}
  void after_step(TrainingState& state) override {
    if (state.step == 3) change_();
  }

 private:
  std::function<void()> change_;
};

constexpr const char* kTableJob = R"(
job:
  model: {mlp: {hidden: [4]}}
  data: {train: {table: {path: rows.csv, features: [a, b], target: "y"}}}
  loss: mean_squared_error
  batch_size: 8
  micro_batches: 4
  threads: 1
  steps: 12
  learning_rate: 0.01
  evaluate: never
  checkpoint: {every: 2 steps, keep: 10}
)";

/// 2023-11-14 22:13:20 UTC, and some seconds.
void set_time(const std::string& path, int seconds) {
  const timeval time{1'700'000'000 + seconds, 0};
  const std::array<timeval, 2> times = {time, time};
  ASSERT_EQ(::utimes(path.c_str(), times.data()), 0);
}

struct ChangedRun {
  Folder data, runs;
  std::string rows_path = data.path() + "/rows.csv", weights_path = data.path() + "/weights.txt";

  ChangedRun() {
    restore();
    write_text(weights_path, weights());
    set_time(weights_path, 0);
  }
  void restore() const {
    replace_text(rows_path, rows());
    set_time(rows_path, 0);
  }
  static std::string weights() {
    std::string text;
    for (int i = 0; i < 16; ++i) text += "1\n";
    return text;
  }
  /// The messages of the ranks that failed, and how many of them had the exit code of data.
  std::vector<std::string> errors(int ranks, const std::function<void()>& change) {
    std::vector<std::string> found;
    std::mutex mutex;
    const Registries registries = Registries::built_in();
    run_in_threads(ranks, [&](Communicator& communicator) {
      ChangesFiles changes(change);
      TrainerOptions options;
      if (communicator.rank() == 0 && change) options.callbacks = {&changes};
      if (communicator.rank() != 0 && change) options.callbacks = {&idle_};
      JobFile job = config::load_text(kTableJob, "job.yaml", {"run_directory=" + runs.path()},
                                      train::catalogue_of(registries), false);
      job.data.train.paths = {rows_path};
      job.data.train.weights = weights_path;
      try {
        (void)train_job(job, communicator, registries, options);
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        found.emplace_back(error.code() == ExitCode::data ? error.what()
                                                          : std::string("another code: ") + error.what());
      }
    });
    return found;
  }
  [[nodiscard]] std::string newest() const {
    const auto all = checkpoint::list_checkpoints(runs.path() + "/checkpoints");
    return all.empty() ? "none" : fs::path(all.front()).filename().string();
  }

 private:
  Callback idle_;
};

std::string ends_with(const std::string& change) {
  return "step 4: " + change +
         "; steps since the newest checkpoint may have read both, so none is written. Restore the file and run again "
         "to "
         "resume from there, or choose a new run_directory";
}

TEST(ChangedSources, EveryRankEndsAtTheNextCheckpointWithTheSameMessage) {
  for (const int ranks : {1, 2}) {
    ChangedRun run;
    const auto size = rows().size();
    const std::string expected = ends_with(
        fmt::format("{0} has changed: it had {1} bytes, modified at 2023-11-14 22:13:20 UTC, and now has {2} bytes, "
                    "modified at 2023-11-14 22:15:00 UTC",
                    run.rows_path, size, size + 6));
    const auto errors = run.errors(ranks, [&] {
      std::ofstream(run.rows_path, std::ios::app) << "1,2,3\n";
      set_time(run.rows_path, 100);
    });
    EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks), expected));
    EXPECT_EQ(run.newest(), checkpoint::checkpoint_name(2));
    run.restore();
    EXPECT_EQ(run.errors(ranks, nullptr), std::vector<std::string>{});
    EXPECT_EQ(run.newest(), checkpoint::checkpoint_name(12));
  }
}

TEST(ChangedSources, AFileOfTheSameSizeAndTimeIsNotTheSame) {
  ChangedRun run;
  const auto errors = run.errors(1, [&] {
    std::string text = rows();
    text[6] = '9';
    replace_text(run.rows_path, text);
    set_time(run.rows_path, 0);
  });
  EXPECT_EQ(errors, std::vector<std::string>{ends_with(fmt::format(
                        "{} has been replaced by another file of {} bytes, modified at 2023-11-14 22:13:20 UTC",
                        run.rows_path, rows().size()))});
}

TEST(ChangedSources, ListsBesideTheSamplesCount) {
  ChangedRun run;
  const auto errors = run.errors(1, [&] { fs::remove(run.weights_path); });
  EXPECT_EQ(errors, std::vector<std::string>{ends_with(run.weights_path + " is gone: No such file or directory")});
}

TEST(ChangedSources, LinksAndPermissionsChangeNoByte) {
  ChangedRun run;
  const auto errors = run.errors(1, [&] {
    fs::create_hard_link(run.rows_path, run.rows_path + ".backup");
    fs::permissions(run.rows_path, fs::perms::owner_read);
  });
  EXPECT_EQ(errors, std::vector<std::string>{});
}

}  // namespace
}  // namespace lockstep
