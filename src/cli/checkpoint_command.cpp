// lockstep checkpoint: which checkpoints a run has (list) and whether they are intact (verify). diff and export are
// files of their own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/checkpoint_commands.hpp"
#include "cli/validators.hpp"
#include "core/words.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "run/checkpoint/chosen_checkpoint.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

struct ListArguments {
  std::string place;
  std::string log = "people";
};

struct CheckpointRow {
  std::string path;
  bool best = false;
  std::optional<checkpoint::Manifest> manifest;
  std::string damage;
};

std::vector<CheckpointRow> rows_of(const std::string& steps) {
  std::vector<CheckpointRow> rows;
  const std::string best = checkpoint::best_checkpoint(steps);
  for (const auto& path : checkpoint::list_checkpoints(steps)) {
    CheckpointRow row{path, fs::path(path).filename() == best, {}, ""};
    try {
      row.manifest = checkpoint::open_checkpoint(path).manifest;
    } catch (const Error& error) {
      row.damage = error.what();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::uint64_t bytes_of(const checkpoint::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& [name, file] : manifest.files) bytes += file.bytes;
  return bytes;
}

void print_checkpoint_text(const CheckpointRow& row) {
  if (!row.manifest) {
    fmt::print("{}  {}\n", row.path, row.damage);
    return;
  }
  std::string text =
      fmt::format("{}  {}, {} tensors in {} file{}", row.path, byte_count(bytes_of(*row.manifest)),
                  row.manifest->tensors.size(), row.manifest->files.size(), row.manifest->files.size() == 1 ? "" : "s");
  for (const auto& [name, value] : row.manifest->progress.metrics) {
    text += fmt::format("  {} {}", name, telemetry::short_number(value));
  }
  fmt::print("{}{}\n", text, row.best ? "  best" : "");
}

void print_checkpoint_json(const CheckpointRow& row) {
  nlohmann::ordered_json line = {{"path", row.path}, {"best", row.best}};
  if (row.manifest) {
    line["step"] = row.manifest->progress.step;
    line["bytes"] = bytes_of(*row.manifest);
    line["files"] = row.manifest->files.size();
    line["tensors"] = row.manifest->tensors.size();
    line["metrics"] = row.manifest->progress.metrics;
  } else {
    line["damage"] = row.damage;
  }
  fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int list(const ListArguments& arguments) {
  for (const auto& row : rows_of(checkpoint::checkpoints_at(arguments.place))) {
    arguments.log == "json" ? print_checkpoint_json(row) : print_checkpoint_text(row);
  }
  return 0;
}

void add_checkpoint_list(CLI::App& checkpoint, Action& run) {
  CLI::App* command = checkpoint.add_subcommand("list", "List the checkpoints of a run, newest first.");
  command->footer(
      "Examples:\n  lockstep checkpoint list runs/digits\n  lockstep checkpoint list runs/digits --log json");
  auto arguments = std::make_shared<ListArguments>();
  command->add_option("DIRECTORY", arguments->place, "a run directory")->required();
  command->add_option("--log", arguments->log, "people, or json: one object per line")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return list(*arguments); }; });
}

std::vector<std::string> damage_of(const std::string& path) {
  try {
    return checkpoint::find_damage(checkpoint::open_checkpoint(path));
  } catch (const Error& error) {
    // unknown whether it is damaged
    if (error.code() == ExitCode::infrastructure || error.code() == ExitCode::cannot_create) throw;
    return {error.what()};
  }
}

int verify(const std::vector<std::string>& places) {
  std::vector<std::string> all;
  for (const auto& place : places) {
    const bool single = checkpoint::step_of(place).has_value();
    for (const auto& path :
         single ? std::vector{place} : checkpoint::list_checkpoints(checkpoint::checkpoints_at(place))) {
      const auto damage = damage_of(path);
      fmt::print("{}  {}\n", path, damage.empty() ? "sound" : "damaged");
      all.insert(all.end(), damage.begin(), damage.end());
    }
  }
  if (!all.empty()) throw Error(ExitCode::data, fmt::format("{}", fmt::join(all, "\n")));
  return 0;
}

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

}  // namespace

void add_checkpoint(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("checkpoint", "List, verify, compare and export checkpoints.");
  command->require_subcommand(1);
  command->footer("Example:\n  lockstep checkpoint list runs/digits");
  add_checkpoint_list(*command, run);
  add_checkpoint_verify(*command, run);
  add_checkpoint_diff(*command, run);
  add_checkpoint_export(*command, run);
  add_checkpoint_job(*command, run);
}

}  // namespace lockstep::cli
