// A small job, run as users run it, and its events.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "lockstep/trainer.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep {

namespace fs = std::filesystem;

inline constexpr const char* kJob = R"(
job:
  model: {layers: [flatten, {linear: {features: 10}}]}
  data:
    train: {digits: {count: 64}}
    validation: {digits: {count: 40, first: 100000}}
  batch_size: 16
  micro_batches: 4
  steps: 12
  metrics: [accuracy]
  optimizer: adam
  learning_rate: 0.01
  evaluate: {every: 2 steps}
  checkpoint: {every: 4 steps}
)";

class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / "lockstep-run-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Keeps the events of a run.
class Events final : public events::Sink {
 public:
  void event(const events::Event& event) override { all.push_back(event); }
  /// All events of one kind.
  template <class Kind>
  [[nodiscard]] std::vector<Kind> of() const {
    std::vector<Kind> found;
    for (const auto& event : all) {
      if (const auto* kind = std::get_if<Kind>(&event)) found.push_back(*kind);
    }
    return found;
  }
  /// The last event of one kind; an empty one if there is none.
  template <class Kind>
  [[nodiscard]] Kind last() const {
    const auto found = of<Kind>();
    return found.empty() ? Kind{} : found.back();
  }
  template <class Kind>
  [[nodiscard]] int count() const {
    return static_cast<int>(of<Kind>().size());
  }
  std::vector<events::Event> all;
};

inline TrainResult run(const std::string& directory, std::vector<std::string> overrides, Events& events,
                       TrainerOptions options = {}) {
  const Registries registries = Registries::built_in();
  overrides.push_back("run_directory=" + directory);
  const JobFile job = config::load_text(kJob, "job.yaml", overrides, train::catalogue_of(registries), false);
  options.sink = &events;
  return train_job(job, *make_single_communicator(), registries, options);
}

}  // namespace lockstep
