// lockstep checkpoint export: the model alone, every tensor whole, as one plain safetensors file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "checkpoint/files.hpp"
#include "checkpoint/saved_model.hpp"
#include "cli/checkpoint_commands.hpp"
#include "lockstep/error.hpp"
#include "telemetry/text.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

struct ExportArguments {
  std::string from, to;
  bool force = false;
};

void check_target(const ExportArguments& arguments) {
  if (fs::is_directory(arguments.to)) {
    throw Error(ExitCode::cannot_create, fmt::format("{}: is a directory; name the file to write", arguments.to));
  }
  if (fs::exists(arguments.to) && !arguments.force) {
    throw Error(ExitCode::cannot_create,
                fmt::format("{}: the file exists; remove it, choose another name, or add --force", arguments.to));
  }
}

int write(const ExportArguments& arguments) {
  check_target(arguments);
  const auto checkpoint = checkpoint_at(arguments.from);
  const std::string bytes = checkpoint::safetensors_of(checkpoint);
  checkpoint::write_whole(checkpoint::real_files(), arguments.to, bytes);
  fmt::print("wrote {}: the model of {}, {}\n", arguments.to, checkpoint.path,
             telemetry::byte_count(static_cast<double>(bytes.size())));
  return 0;
}

}  // namespace

void add_checkpoint_export(CLI::App& checkpoint, Action& run) {
  CLI::App* command =
      checkpoint.add_subcommand("export", "Write the model, without optimizer state, as one safetensors file.");
  command->footer(
      "Examples:\n  lockstep checkpoint export runs/digits digits.safetensors\n"
      "  lockstep checkpoint export runs/digits/checkpoints/best digits.safetensors --force");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("CHECKPOINT", arguments->from, kCheckpointPlaceHelp)->required();
  command->add_option("FILE", arguments->to, "the file to write")->required();
  command->add_flag("--force", arguments->force, "overwrite an existing file");
  command->callback([&run, arguments] { run = [arguments] { return write(*arguments); }; });
}

}  // namespace lockstep::cli
