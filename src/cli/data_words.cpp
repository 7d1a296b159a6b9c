#include "cli/data_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/job_argument.hpp"
#include "core/nearest.hpp"
#include "lockstep/error.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep::cli {

namespace {

/// The built-in ones: a plugin's are known to the job that names it.
const std::vector<std::string>& kinds() {
  static_assert(kNames<SourceKind>.back() == "own");
  static const std::vector<std::string> list(kNames<SourceKind>.begin(), kNames<SourceKind>.end() - 1);
  return list;
}

std::string key_of(const std::string& word) {
  return word.substr(0, word.find('='));
}

bool is_kind(const std::string& word) {
  return is_override(word) && std::find(kinds().begin(), kinds().end(), key_of(word)) != kinds().end();
}

/// Writes the source as overrides of an otherwise minimal job, so that config reads and checks it.
JobFile job_around(const std::vector<std::string>& words, const config::Catalogue& catalogue) {
  const std::string kind = key_of(words.front());
  const std::string main_setting = kind == name_of(SourceKind::digits) ? "count" : "path";
  std::vector<std::string> overrides;
  bool is_map = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_override(words[i])) {
      throw Error(ExitCode::usage,
                  fmt::format("expected a setting of the source '{}' (key=value), found '{}'", kind, words[i]));
    }
    const std::string value = words[i].substr(words[i].find('=') + 1);
    if (i == 0 && value.starts_with("{")) {  // all settings at once, as in a job
      overrides.push_back(fmt::format("data.train.{}={}", kind, value));
      is_map = true;
      continue;
    }
    const std::string key = i == 0 ? main_setting : key_of(words[i]);
    overrides.push_back(fmt::format("data.train.{}.{}={}", kind, key, value));
  }
  const auto sets_target = [](const std::string& word) { return key_of(word) == "target"; };
  if (kind == name_of(SourceKind::table) && !is_map && std::none_of(words.begin(), words.end(), sets_target)) {
    throw Error(ExitCode::usage, "table: expected the column to predict, found none; add target=COLUMN");
  }
  const std::string text = fmt::format("job: {{model: mlp, data: {{train: {{{}: {{}}}}}}, steps: 1}}\n", kind);
  JobFile job = config::load_text(text, "", overrides, catalogue, true);
  job.data.train.place = {};  // the text was generated: its line numbers mean nothing to the user
  return job;
}

}  // namespace

DataWords read_data_words(const std::vector<std::string>& words) {
  DataWords read;
  if (!words.empty() && is_kind(words.front())) {
    read.registries = Registries::built_in();
    read.job = job_around(words, train::catalogue_of(read.registries));
    return read;
  }
  if (!words.empty() && is_override(words.front()) && key_of(words.front()).find('.') == std::string::npos &&
      !nearest(key_of(words.front()), kinds()).empty()) {
    throw Error(ExitCode::usage, fmt::format("'{}': expected a job file or a kind of data set ({}){}", words.front(),
                                             fmt::join(kinds(), ", "), did_you_mean(key_of(words.front()), kinds())));
  }
  JobArgument argument;
  argument.words = words;
  read.registries = argument.registries();
  read.job = argument.load(read.registries);
  read.is_job = true;
  return read;
}

}  // namespace lockstep::cli
