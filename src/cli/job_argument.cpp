#include "cli/job_argument.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/files.hpp"
#include "lockstep/error.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep::cli {

namespace fs = std::filesystem;

bool is_override(const std::string& word) {
  if (word.find('=') == std::string::npos || word.find('/') < word.find('=')) return false;
  const std::string ending = fs::path(word).extension().string();
  return (ending != ".yaml" && ending != ".yml" && ending != ".json") || !fs::is_regular_file(word);
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

void JobArgument::split() {
  FileAndOverrides both = split_words(words, "job file");
  file = std::move(both.file);
  overrides = std::move(both.overrides);
}

namespace {

/// In places, "stdin:3:5"; without a folder, since paths in such a job are this process's.
std::string name_of_pipe(const std::string& file) {
  if (file == "-") return "stdin";
  return file.starts_with("/dev/fd/") ? "pipe" : fs::path(file).filename().string();
}

}  // namespace

// A pipe can be read only once, and the job is needed twice: its plugins first.
bool JobArgument::is_pipe() {
  split();
  if (piped_) return true;
  std::error_code ignored;
  const auto kind = fs::status(file, ignored).type();
  return file == "-" || kind == fs::file_type::fifo || kind == fs::file_type::character ||
         kind == fs::file_type::socket;
}

const std::string& JobArgument::piped() {
  if (!piped_) piped_ = read_whole_file(file == "-" ? "/dev/stdin" : file).value_or("");
  return *piped_;
}

void JobArgument::require_file() {
  if (!is_pipe()) return;
  throw Error(ExitCode::usage,
              fmt::format("{}: expected a file, which every rank reads, found a pipe; write the job to a file", file));
}

Registries JobArgument::registries() {
  if (is_pipe()) {
    Registries registries = Registries::built_in();
    train::open_plugins(config::plugins_of_text(piped(), name_of_pipe(file), overrides), registries);
    return registries;
  }
  return train::registries_of({file}, overrides);
}

JobFile JobArgument::load(const Registries& registries, bool need_data) {
  if (is_pipe())
    return config::load_text(piped(), name_of_pipe(file), overrides, train::catalogue_of(registries), need_data);
  checkpoint = is_saved() && fs::exists(file + "/manifest.json") ? file : "";
  return load_job(file, overrides, registries, need_data);
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
