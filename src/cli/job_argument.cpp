#include "cli/job_argument.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

#include "checkpoint/checkpoint.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace fs = std::filesystem;

bool is_override(const std::string& word) {
  return word.find('=') != std::string::npos && word.find('/') > word.find('=');
}

void JobArgument::add_to(CLI::App& command) {
  command
      .add_option("JOB", words,
                  "a job file, or the directory of a run, then any number of overrides key=value (batch_size=256)")
      ->expected(0, -1);
}

JobFile JobArgument::load(const config::Catalogue& catalogue, bool need_data) {
  file.clear();
  checkpoint.clear();
  overrides.clear();
  for (const auto& word : words) {
    if (is_override(word)) {
      overrides.push_back(word);
    } else if (file.empty()) {
      file = word;
    } else {
      throw Error(ExitCode::usage,
                  fmt::format("expected one job file and overrides key=value, found '{}' and '{}'", file, word));
    }
  }
  if (file.empty()) return config::default_job(overrides, catalogue, need_data);
  return is_saved() ? load_saved(catalogue, need_data) : config::load(file, overrides, catalogue, need_data);
}

bool JobArgument::is_saved() const {
  return fs::is_directory(file);
}

JobFile JobArgument::load_saved(const config::Catalogue& catalogue, bool need_data) {
  const bool one = fs::exists(file + "/manifest.json");
  if (one) checkpoint = file;
  std::string why = "no checkpoints in it";
  for (const auto& directory : one ? std::vector{file} : checkpoint::list_checkpoints(file + "/checkpoints")) {
    const std::string manifest = directory + "/manifest.json";
    const auto text = checkpoint::job_of_manifest(manifest, why);
    if (!text) continue;
    JobFile job = config::load_text(*text, manifest, overrides, catalogue, need_data);
    const auto moves = [](const std::string& word) { return word.starts_with("run_directory="); };
    if (!one && std::none_of(overrides.begin(), overrides.end(), moves)) job.run_directory = file;
    return job;
  }
  throw Error(ExitCode::data,
              fmt::format("{}: expected a job file, or the directory of a run or checkpoint, found a folder with {}",
                          file, why));
}

}  // namespace lockstep::cli
