// A small job, run as people run it, and what it said.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "lockstep/trainer.hpp"
#include "telemetry/sink.hpp"
#include "train/catalogue.hpp"

namespace lockstep {

namespace fs = std::filesystem;

inline constexpr const char* kJob = R"(
job:
  model: {layers: [flatten, {linear: {features: 10}}]}
  data:
    train: {digits: {count: 64}}
    validation: {digits: {count: 40, first: 100000}}
  batch_size: 16
  shards: 4
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

/// Keeps what a run says.
class Events final : public telemetry::Sink {
 public:
  void event(const std::string& name, const telemetry::Record& record) override { all.emplace_back(name, record); }
  [[nodiscard]] int count(const std::string& name) const {
    int n = 0;
    for (const auto& [event, record] : all) n += event == name ? 1 : 0;
    return n;
  }
  /// The events of that name.
  [[nodiscard]] std::vector<telemetry::Record> of(const std::string& name) const {
    std::vector<telemetry::Record> found;
    for (const auto& [event, record] : all) {
      if (event == name) found.push_back(record);
    }
    return found;
  }
  /// A number of the last event of that name.
  [[nodiscard]] double number(const std::string& name, const std::string& field) const {
    double found = -1;
    for (const auto& [event, record] : all) {
      if (event == name) found = telemetry::number(record, field, found);
    }
    return found;
  }
  /// A field of the last event of that name, as text.
  [[nodiscard]] std::string text(const std::string& name, const std::string& field) const {
    std::string found;
    for (const auto& [event, record] : all) {
      if (event != name) continue;
      for (const auto& [key, value] : record) {
        if (key == field && std::holds_alternative<std::string>(value)) found = std::get<std::string>(value);
      }
    }
    return found;
  }
  /// A map of the last event of that name.
  [[nodiscard]] std::map<std::string, double> map(const std::string& name, const std::string& field) const {
    std::map<std::string, double> found;
    for (const auto& [event, record] : all) {
      const auto* value = event == name ? telemetry::find(record, field) : nullptr;
      if (value != nullptr) found = std::get<std::map<std::string, double>>(*value);
    }
    return found;
  }
  std::vector<std::pair<std::string, telemetry::Record>> all;
};

inline TrainResult run(const std::string& directory, std::vector<std::string> overrides, Events& events,
                       TrainerOptions options = {}) {
  const Registries registries = Registries::built_in();
  overrides.push_back("run_directory=" + directory);
  const Job job = config::load_text(kJob, "job.yaml", overrides, train::catalogue_of(registries), false);
  options.sink = &events;
  return train_job(job, *make_single_communicator(), registries, options);
}

}  // namespace lockstep
