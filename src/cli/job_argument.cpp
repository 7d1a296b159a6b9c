#include "cli/job_argument.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::cli {

void JobArgument::add_to(CLI::App& command) {
  command.add_option("JOB", words, "a job file, then any number of overrides key=value (batch_size=256)")
      ->expected(0, -1);
}

Job JobArgument::load(const config::Catalogue& catalogue, bool need_data) {
  for (const auto& word : words) {
    if (word.find('=') != std::string::npos && word.find('/') > word.find('=')) {
      overrides.push_back(word);
    } else if (file.empty()) {
      file = word;
    } else {
      throw Error(ExitCode::usage, fmt::format("expected one job file and overrides key=value, found '{}' and '{}'", file, word));
    }
  }
  return file.empty() ? config::default_job(overrides, catalogue) : config::load(file, overrides, catalogue, need_data);
}

}  // namespace lockstep::cli
