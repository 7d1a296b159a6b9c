#include "cli/job_argument.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <utility>

#include "checkpoint/saved_model.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace fs = std::filesystem;

bool is_override(const std::string& word) {
  return word.find('=') != std::string::npos && word.find('/') > word.find('=');
}

FileAndOverrides split_words(const std::vector<std::string>& words, const std::string& kind) {
  FileAndOverrides split;
  for (const auto& word : words) {
    if (is_override(word)) {
      split.overrides.push_back(word);
    } else if (split.file.empty()) {
      split.file = word;
    } else {
      throw Error(ExitCode::usage,
                  fmt::format("expected one {} and overrides key=value, found '{}' and '{}'", kind, split.file, word));
    }
  }
  return split;
}

void JobArgument::add_to(CLI::App& command) {
  command
      .add_option("JOB", words,
                  "a job file, or the directory of a run, then any number of overrides key=value (batch_size=256)")
      ->expected(0, -1);
}

JobFile JobArgument::load(const config::Catalogue& catalogue, bool need_data) {
  checkpoint.clear();
  FileAndOverrides split = split_words(words, "job file");
  file = std::move(split.file);
  overrides = std::move(split.overrides);
  if (file.empty()) return config::default_job(overrides, catalogue, need_data);
  if (!is_saved()) return config::load(file, overrides, catalogue, need_data);
  if (fs::exists(file + "/manifest.json")) checkpoint = file;
  return checkpoint::load_saved_job(file, overrides, catalogue, need_data);
}

bool JobArgument::is_saved() const {
  return fs::is_directory(file);
}

ProfileSteps profile_steps(const std::string& text) {
  if (text.empty()) return {};
  ProfileSteps steps;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, steps.first);
  steps.last = steps.first;
  if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '-') {
    read = std::from_chars(read.ptr + 1, end, steps.last);
  }
  const bool whole = read.ec == std::errc{} && read.ptr == end;
  if (whole && steps.first >= 1 && steps.last >= steps.first) return steps;
  throw Error(ExitCode::usage, fmt::format("--profile: expected steps, as in 11-60, counted from 1, found '{}'", text));
}

}  // namespace lockstep::cli
