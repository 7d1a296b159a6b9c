// lockstep replay: the best trial of a population, trained again.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "config/config.hpp"
#include "lockstep/error.hpp"
#include "run/train/catalogue.hpp"
#include "tools/sweep/replay.hpp"

namespace lockstep::cli {

namespace {

struct ReplayArguments {
  std::vector<std::string> words;
  std::string ranks;
};

int run_replay(const ReplayArguments& arguments) {
  const auto [file, overrides] = split_words(arguments.words, "history");
  if (file.empty()) throw Error(ExitCode::usage, "expected the best-history.json of a sweep, found none");
  const sweep::History history = sweep::read_history(file);
  Registries registries = Registries::built_in();
  for (const auto& leg : history.legs) train::open_plugins(config::plugins_of_text(leg.job, "", overrides), registries);
  const config::Catalogue catalogue = train::catalogue_of(registries);
  std::string run_directory;
  for (const auto& leg : history.legs) {  // mistakes are found before the first one is trained
    run_directory = config::load_text(leg.job, "", overrides, catalogue, true).run_directory;
  }
  std::vector<std::string> words = overrides;
  if (!arguments.ranks.empty()) words.insert(words.end(), {"--ranks", arguments.ranks});
  return sweep::replay(history, run_directory, words);
}

}  // namespace

void add_replay(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand(
      "replay", "Train the best trial of a population again, from step 0, to the same parameters.");
  command->footer("Examples:\n  lockstep replay sweeps/digits/best-history.json --ranks 2");
  auto arguments = std::make_shared<ReplayArguments>();
  command
      ->add_option("FILE", arguments->words,
                   "a sweep's best-history.json, then any number of overrides key=value (run_directory=runs/again)")
      ->required();
  command->add_option("--ranks", arguments->ranks, "as for lockstep train");
  command->callback([&run, arguments] { run = [arguments] { return run_replay(*arguments); }; });
}

}  // namespace lockstep::cli
