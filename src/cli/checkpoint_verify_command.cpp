// lockstep checkpoint verify: every byte of one checkpoint, or of all of a run, held against its SHA-256.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/checkpoint_commands.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

std::vector<std::string> damage_of(const std::string& path) {
  try {
    return checkpoint::find_damage(checkpoint::open_checkpoint(path));
  } catch (const Error& error) {
    if (error.code() == ExitCode::infrastructure || error.code() == ExitCode::cannot_create) throw;  // who knows?
    return {error.what()};
  }
}

int verify(const std::vector<std::string>& places) {
  std::vector<std::string> all;
  for (const auto& place : places) {
    const bool single = checkpoint::step_of(place).has_value();
    for (const auto& path : single ? std::vector{place} : checkpoint::list_checkpoints(steps_directory(place))) {
      const auto damage = damage_of(path);
      fmt::print("{}  {}\n", path, damage.empty() ? "sound" : "damaged");
      all.insert(all.end(), damage.begin(), damage.end());
    }
  }
  if (!all.empty()) throw Error(ExitCode::data, fmt::format("{}", fmt::join(all, "\n")));
  return 0;
}

}  // namespace

void add_checkpoint_verify(CLI::App& checkpoint, Action& run) {
  CLI::App* command =
      checkpoint.add_subcommand("verify", "Verify every byte against its checksum; exits with 65 if one differs.");
  command->footer(
      "Examples:\n  lockstep checkpoint verify runs/digits\n"
      "  lockstep checkpoint verify runs/digits/checkpoints/step-00000748");
  auto places = std::make_shared<std::vector<std::string>>();
  command->add_option("PLACES", *places, "run directories (all their checkpoints) or directories of single checkpoints")
      ->required()
      ->expected(1, -1);
  command->callback([&run, places] { run = [places] { return verify(*places); }; });
}

}  // namespace lockstep::cli
