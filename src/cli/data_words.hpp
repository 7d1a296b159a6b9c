// The arguments of the `data` commands: a job file with overrides, or a bare source (`images=/data/c10.tar.zst`).
#pragma once

#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "lockstep/job.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::cli {

void add_data_info(CLI::App& data, Action& run);
void add_data_tokenize(CLI::App& data, Action& run);
void add_data_detokenize(CLI::App& data, Action& run);

struct DataWords {
  Registries registries;
  JobFile job;
  bool is_job = false;  ///< false: a job was generated around the source; only job.data.train is meaningful
};

inline constexpr const char* kDataWordsHelp =
    "a job file and overrides key=value, or a source: kind=PATH and its settings (digits=COUNT for the digits)";

/// Throws Error(usage) if the words are neither, and config's errors.
[[nodiscard]] DataWords read_data_words(const std::vector<std::string>& words);

}  // namespace lockstep::cli
