// lockstep sweep: a search over the settings of a job.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/ranks.hpp"
#include "cli/trial_places.hpp"
#include "cli/validators.hpp"
#include "config/sweep.hpp"
#include "lockstep/error.hpp"
#include "sweep/method.hpp"
#include "sweep/sweep.hpp"

namespace lockstep::cli {

namespace {

struct SweepArguments {
  std::vector<std::string> words;
  std::string ranks = "auto", directory, log = "people";
  sweep::SweepRunOptions options;
};

config::SweepFile load(const SweepArguments& arguments, const Registries& registries,
                       const config::Catalogue& catalogue) {
  const auto [file, overrides] = split_words(arguments.words, "sweep file");
  if (file.empty()) throw Error(ExitCode::usage, "expected a sweep file, found none");
  config::SweepFile sweep = config::load_sweep(file, overrides, catalogue, true);
  if (!arguments.directory.empty()) sweep.directory = arguments.directory;
  if (sweep.direction == Direction::automatic) sweep.direction = better_direction(sweep.metric, registries);
  return sweep;
}

/// Settings that no trial could have are reported before any trial starts.
void check_first_trials(const config::SweepFile& sweep, const config::Catalogue& catalogue) {
  constexpr int kTried = 20;
  for (int trial = 0; trial < kTried; ++trial) {
    (void)config::load_trial(sweep, sweep::overrides(sweep::random_settings(sweep, trial)), catalogue, true);
  }
}

int run_sweep(SweepArguments& arguments) {
  const Registries registries = Registries::built_in();
  const config::Catalogue catalogue = train::catalogue_of(registries);
  (void)rank_count(arguments.ranks, 1);  // a mistake here is reported before those in the file
  const config::SweepFile sweep = load(arguments, registries, catalogue);
  const JobFile job = config::load_trial(sweep, {}, catalogue, true);
  check_first_trials(sweep, catalogue);
  config::check_world_size(job, arguments.options.ranks_per_trial);
  place_trials(job, arguments.ranks, "--ranks-per-trial", arguments.options);
  arguments.options.json = arguments.log == "json";
  return sweep::run_sweep(sweep, arguments.options, catalogue);
}

}  // namespace

void add_sweep(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand(
      "sweep", "Search settings of a job: train trials of it beside each other, and keep the best.");
  command->footer(
      "Examples:\n  lockstep sweep examples/digits-sweep.yaml\n"
      "  lockstep sweep sweep.yaml --ranks 4 --ranks-per-trial 2");
  auto arguments = std::make_shared<SweepArguments>();
  command
      ->add_option("FILE", arguments->words,
                   "a sweep file, then any number of overrides of its job key=value (batch_size=256)")
      ->required();
  sweep::SweepRunOptions& options = arguments->options;
  command
      ->add_option("--ranks", arguments->ranks,
                   "ranks of all trials that run at the same time; auto: one for each GPU, or core")
      ->capture_default_str();
  command->add_option("--ranks-per-trial", options.ranks_per_trial, "ranks that train a trial")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--retries", options.retries, "how often a trial that ends with an error is tried again")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--directory", arguments->directory,
                      "for trials and results; the file's `directory`, or sweeps/<name>, by default");
  command->add_option("--log", arguments->log, "people (on stderr) or json (the journal's lines on stdout)")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return run_sweep(*arguments); }; });
}

}  // namespace lockstep::cli
