#include "cli/job_argument.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "lockstep/error.hpp"

namespace lockstep::cli {

bool is_override(const std::string& word) {
  return word.find('=') != std::string::npos && word.find('/') > word.find('=');
}

void JobArgument::add_to(CLI::App& command) {
  command.add_option("JOB", words, "a job file, then any number of overrides key=value (batch_size=256)")
      ->expected(0, -1);
}

Job JobArgument::load(const config::Catalogue& catalogue, bool need_data) {
  file.clear();
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
  return file.empty() ? config::default_job(overrides, catalogue) : config::load(file, overrides, catalogue, need_data);
}

}  // namespace lockstep::cli
