// lockstep checkpoint: what a run has saved (list), whether it is sound (verify), what differs (diff), and the model
// alone as one file (export).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/checkpoint_commands.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

checkpoint::Checkpoint sound(const std::string& directory) {
  std::string why;
  auto checkpoint = checkpoint::read_checkpoint(directory, why);
  if (!checkpoint) throw Error(ExitCode::data, why);
  return std::move(*checkpoint);
}

checkpoint::Checkpoint newest_sound(const std::string& place, const std::string& steps) {
  std::string why, damaged;
  for (const auto& path : checkpoint::list_checkpoints(steps)) {
    if (auto checkpoint = checkpoint::read_checkpoint(path, why)) return std::move(*checkpoint);
    damaged += (damaged.empty() ? "" : "; ") + why;
  }
  throw Error(ExitCode::data, fmt::format("{}: expected a checkpoint, found {}", place,
                                          damaged.empty() ? "none" : "only damaged ones: " + damaged));
}

}  // namespace

std::string steps_directory(const std::string& place) {
  if (fs::is_directory(place + "/checkpoints")) return place + "/checkpoints";
  if (!checkpoint::list_checkpoints(place).empty()) return place;
  throw Error(ExitCode::data, fmt::format("{}: expected a checkpoint or a run directory, found {}", place,
                                          fs::exists(place) ? "no checkpoints in it" : "nothing there"));
}

checkpoint::Checkpoint checkpoint_at(const std::string& place) {
  const fs::path path = place;
  if (path.filename() == "best" && fs::is_regular_file(path)) {
    const std::string steps = path.parent_path().string();
    return sound((fs::path(steps) / checkpoint::best_checkpoint(steps)).string());
  }
  if (fs::exists(path / "manifest.json") || checkpoint::step_of(place)) return sound(place);
  return newest_sound(place, steps_directory(place));
}

void add_checkpoint(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("checkpoint", "List, verify, compare and export checkpoints.");
  command->require_subcommand(1);
  command->footer("Example:\n  lockstep checkpoint list runs/digits");
  add_checkpoint_list(*command, run);
  add_checkpoint_verify(*command, run);
  add_checkpoint_diff(*command, run);
  add_checkpoint_export(*command, run);
}

}  // namespace lockstep::cli
