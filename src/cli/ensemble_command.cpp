// lockstep ensemble: several models of one task trained beside each other, and what they predict together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/ensemble_commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/trial_places.hpp"
#include "cli/validators.hpp"
#include "config/sweep.hpp"
#include "core/files.hpp"
#include "core/say.hpp"
#include "lockstep/error.hpp"
#include "run/train/catalogue.hpp"
#include "tools/sweep/sweep.hpp"

namespace lockstep::cli {

namespace {

using Json = nlohmann::ordered_json;

struct EnsembleTraining {
  std::vector<std::string> words;
  std::string by = "seed", ranks = "auto", directory, log = "people";
  std::int64_t members = 0;  ///< 0: not given
  sweep::SweepRunOptions options;
};

config::SweepFile ensemble_of(const EnsembleTraining& arguments, const std::vector<std::string>& jobs,
                              const std::vector<std::string>& overrides, const config::Catalogue& catalogue) {
  if (jobs.size() > 1) {
    if (arguments.members > 0 || arguments.by != "seed") {
      throw Error(ExitCode::usage,
                  fmt::format("ensemble train: expected one job with --members and --by, or a job for each member, "
                              "found {} jobs with {}",
                              jobs.size(), arguments.members > 0 ? "--members" : "--by"));
    }
    return config::make_ensemble(jobs, overrides, config::MembersBy::jobs, 0, catalogue);
  }
  const auto by = arguments.by == "bootstrap" ? config::MembersBy::bootstrap : config::MembersBy::seed;
  return config::make_ensemble(jobs, overrides, by, arguments.members > 0 ? arguments.members : 4, catalogue);
}

int train_ensemble(EnsembleTraining& arguments) {
  (void)rank_count(arguments.ranks, 1);  // a mistake here is reported before those in the file
  std::vector<std::string> jobs, overrides;
  for (const auto& word : arguments.words) (is_override(word) ? overrides : jobs).push_back(word);
  if (jobs.empty()) jobs.emplace_back();  // the embedded digits
  const Registries registries = train::registries_of(jobs, overrides);
  const config::Catalogue catalogue = train::catalogue_of(registries);
  config::SweepFile ensemble = ensemble_of(arguments, jobs, overrides, catalogue);
  if (!arguments.directory.empty()) ensemble.directory = arguments.directory;
  ensemble.direction = better_direction(ensemble.metric, registries);
  const JobFile job = config::load_member(ensemble, {}, catalogue);
  config::check_world_size(job, arguments.options.ranks_per_trial);
  place_trials(job, arguments.ranks, {"--ranks-per-member", "--members-per-gpu"}, arguments.options);
  arguments.options.json = arguments.log == "json";
  return sweep::run_sweep(ensemble, arguments.options, catalogue);
}

std::string weights_path(const std::string& directory) {
  return directory + "/weights.json";
}

}  // namespace

void EnsembleArguments::add_to(CLI::App& command) {
  command.add_option("MEMBERS", words, kMembersHelp)->required()->expected(1, -1);
  command.add_option("--checkpoint", checkpoint, "of each member: auto, newest or best")
      ->check(one_of({"auto", "newest", "best"}))
      ->capture_default_str();
  ranks.add_to(command);
}

void EnsembleArguments::add_log_to(CLI::App& command, const std::string& json) {
  command.add_option("--log", log, fmt::format("people, or json: {} on stdout", json))
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
}

std::vector<std::string> EnsembleArguments::places() const {
  std::vector<std::string> places;
  for (const auto& word : words) {
    if (!is_override(word)) places.push_back(word);
  }
  return places;
}

std::vector<std::string> EnsembleArguments::overrides() const {
  std::vector<std::string> overrides;
  for (const auto& word : words) {
    if (is_override(word)) overrides.push_back(word);
  }
  return overrides;
}

std::string EnsembleArguments::directory() const {
  const auto all = places();
  return all.size() == 1 ? all.front() : "";
}

int run_with_members(EnsembleArguments& arguments, const EnsembleBody& body) {
  const auto directories = ensemble::member_directories(arguments.places());
  Registries registries = train::registries_of(directories, arguments.overrides());
  if (!arguments.job.empty()) train::open_plugins(config::plugins_of(arguments.job, arguments.overrides()), registries);
  const auto job = load_job(directories.front(), arguments.overrides(), registries, false);
  return run_on_ranks(
      arguments.ranks,
      [&](Communicator& communicator) {
        ensemble::Members members(directories, arguments.overrides(), arguments.checkpoint, registries, communicator);
        for (std::size_t m = 0; m < members.size(); ++m) {
          for (const auto& warning : members.model(m).warnings()) say("warning: {}\n", warning);
        }
        return body(members, communicator, registries);
      },
      automatic_ranks(job));
}

void write_fitted_weights(const std::string& directory, const std::vector<double>& weights,
                          const ensemble::Members& members) {
  Json json = {{"weights", weights}, {"parameters_sha256", Json::array()}};
  for (std::size_t m = 0; m < members.size(); ++m) {
    json["parameters_sha256"].push_back(exec::sha256_of(members.model(m).saved().parameters));
  }
  write_whole_file(weights_path(directory), json.dump(2) + "\n");
}

std::vector<double> read_fitted_weights(const std::string& directory, const ensemble::Members& members) {
  const auto refuse = [&](const std::string& found) {
    throw Error(ExitCode::data,
                fmt::format("--combine weighted: expected weights fitted to these members in {}, found {}; fit them "
                            "with `lockstep ensemble eval {}`",
                            directory.empty() ? "an ensemble's directory" : weights_path(directory), found,
                            directory.empty() ? "DIRECTORY" : directory));
  };
  const auto text = directory.empty() ? std::nullopt : read_whole_file(weights_path(directory));
  if (!text) refuse("none");
  std::vector<double> weights;
  std::vector<std::string> parameters;
  try {
    const auto json = Json::parse(*text);
    json.at("weights").get_to(weights);
    json.at("parameters_sha256").get_to(parameters);
  } catch (const Json::exception&) {
    refuse("something else");
  }
  bool same = weights.size() == members.size() && parameters.size() == members.size();
  for (std::size_t m = 0; same && m < members.size(); ++m) {
    same = parameters[m] == exec::sha256_of(members.model(m).saved().parameters);
  }
  if (!same) refuse("those of others");
  return weights;
}

void add_ensemble_train(CLI::App& ensemble, Action& run) {
  CLI::App* command = ensemble.add_subcommand("train", "Train the members, each on devices of its own, at one time.");
  command->footer(
      "Examples:\n  lockstep ensemble train examples/digits.yaml --members 3 --by bootstrap\n"
      "  lockstep ensemble train small.yaml large.yaml epochs=5");
  auto arguments = std::make_shared<EnsembleTraining>();
  command->add_option("JOBS", arguments->words,
                      "a job file, or one for each member; overrides key=value; the embedded digits by default");
  command->add_option("--members", arguments->members, "members of one job; 4 by default")->check(at_least(2));
  command
      ->add_option("--by", arguments->by,
                   "how members of one job differ: by seed, or by bootstrap, each with its own sample of the training "
                   "set, too")
      ->check(one_of({"seed", "bootstrap"}))
      ->capture_default_str();
  sweep::SweepRunOptions& options = arguments->options;
  command
      ->add_option("--ranks", arguments->ranks,
                   "ranks of all members that are trained at the same time; auto: one for each GPU, or core")
      ->capture_default_str();
  command->add_option("--ranks-per-member", options.ranks_per_trial, "ranks that train a member")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option("--members-per-gpu", options.trials_per_gpu,
                   "members that share a GPU, or a slice of one, where MPS or time-slicing lets them")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--retries", options.retries, "how often a member that ends with an error is tried again")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--directory", arguments->directory, "for members and results; ensembles/<name> by default");
  command->add_option("--log", arguments->log, "people (on stderr) or json (the journal's lines on stdout)")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return train_ensemble(*arguments); }; });
}

void add_ensemble(CLI::App& program, Action& run) {
  CLI::App* command =
      program.add_subcommand("ensemble", "Train several models of one task, and combine what they have learned.");
  command->require_subcommand(1);
  command->footer("Example:\n  lockstep ensemble train --members 3\n  lockstep ensemble eval ensembles/digits");
  add_ensemble_train(*command, run);
  add_ensemble_eval(*command, run);
  add_ensemble_predict(*command, run);
  add_ensemble_soup(*command, run);
  add_ensemble_distill(*command, run);
}

}  // namespace lockstep::cli
