// lockstep data fetch: a known data set from a list of mirrors that users may edit.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/data_commands.hpp"
#include "data/fetch.hpp"
#include "lockstep/error.hpp"
#include "telemetry/text.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

struct FetchArguments {
  std::string name, directory, mirrors;
};

/// Beside the installed program, or in the source tree that it was built in.
std::string find_mirrors() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    for (const char* place : {"share/lockstep/mirrors.json", "share/mirrors.json"}) {
      if (fs::exists(folder / place, error)) return (folder / place).string();
    }
  }
  throw Error(
      ExitCode::usage,
      "data fetch: expected the list of mirrors at share/lockstep/mirrors.json of the installation, found none; "
      "give one with --mirrors FILE");
}

void show_fetched(const std::string& name, std::uint64_t done, std::uint64_t all) {
  const double share = all > 0 ? 100.0 * static_cast<double>(done) / static_cast<double>(all) : 0;
  fmt::print(stderr, "\r{}: {:.0f} %{}", name, share, done == all ? "\n" : "");
}

int fetch(const FetchArguments& arguments) {
  data::FetchOptions options;
  options.mirrors_file = arguments.mirrors.empty() ? find_mirrors() : arguments.mirrors;
  if (isatty(STDERR_FILENO) == 1) options.progress = show_fetched;
  const std::string directory = arguments.directory.empty() ? "data/" + arguments.name : arguments.directory;
  for (const auto& file : data::fetch(arguments.name, directory, options)) {
    fmt::print("{} {}\n", file.path,
               file.was_there
                   ? "already there"
                   : fmt::format("received, {} bytes", telemetry::grouped(static_cast<std::int64_t>(file.received))));
  }
  return 0;
}

}  // namespace

void add_data_fetch(CLI::App& data, Action& run) {
  CLI::App* command = data.add_subcommand("fetch", "Download a well-known data set and verify it.");
  command->footer("Example:\n  lockstep data fetch cifar10 --to /data/cifar10");
  auto arguments = std::make_shared<FetchArguments>();
  command->add_option("NAME", arguments->name, "mnist or cifar10")->required();
  command->add_option("--to", arguments->directory, "the directory to write to; data/NAME by default");
  command->add_option("--mirrors", arguments->mirrors, "a file with other mirrors, in the format of mirrors.json");
  command->callback([&run, arguments] { run = [arguments] { return fetch(*arguments); }; });
}

}  // namespace lockstep::cli
