// lockstep data: what a data set holds (info), converting it to one indexed file (pack), downloading known ones
// (fetch); texts to tokens (tokenize) and back stand in a file of their own.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/data_words.hpp"
#include "cli/validators.hpp"
#include "core/say.hpp"
#include "data/fetch.hpp"
#include "data/open.hpp"
#include "data/pack.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

struct FetchArguments {
  std::string name, directory, mirrors;
};

/// In the directories above the program: those of an installation, or of the source tree that it was built in.
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
  const double share = all > 0 ? 100.0 * static_cast<double>(done) / all : 0;
  say("\r{}: {:.0f} %{}", name, share, done == all ? "\n" : "");
}

int fetch(const FetchArguments& arguments) {
  data::FetchOptions options;
  options.mirrors_file = arguments.mirrors.empty() ? find_mirrors() : arguments.mirrors;
  if (isatty(STDERR_FILENO) == 1) options.progress = show_fetched;
  const std::string directory = arguments.directory.empty() ? "data/" + arguments.name : arguments.directory;
  for (const auto& file : data::fetch(arguments.name, directory, options)) {
    fmt::print("{} {}\n", file.path,
               file.was_there ? "already there" : fmt::format("received, {} bytes", telemetry::grouped(file.received)));
  }
  return 0;
}

void add_data_fetch(CLI::App& data, Action& run) {
  CLI::App* command = data.add_subcommand("fetch", "Download a well-known data set and verify it.");
  command->footer("Example:\n  lockstep data fetch cifar10 --to /data/cifar10");
  auto arguments = std::make_shared<FetchArguments>();
  command->add_option("NAME", arguments->name, "mnist, cifar10 or tinyshakespeare")->required();
  command->add_option("--to", arguments->directory, "the directory to write to; data/NAME by default");
  command->add_option("--mirrors", arguments->mirrors, "a file with other mirrors, in the format of mirrors.json");
  command->callback([&run, arguments] { run = [arguments] { return fetch(*arguments); }; });
}

struct PackArguments {
  std::vector<std::string> words;
  double segment_megabytes = 1024;
};

void show_packed(std::int64_t done, std::int64_t all) {
  if (done % 512 != 0 && done != all) return;
  say("\r{} of {} samples{}", telemetry::grouped(done), telemetry::grouped(all), done == all ? "\n" : "");
}

int pack(PackArguments& arguments) {
  if (arguments.words.size() < 2) {
    throw Error(ExitCode::usage, fmt::format("data pack: expected a source and the file to write, found {} argument{}; "
                                             "for example: lockstep data pack images=photos photos.pack",
                                             arguments.words.size(), arguments.words.size() == 1 ? "" : "s"));
  }
  const std::string path = arguments.words.back();
  arguments.words.pop_back();
  const DataWords words = read_data_words(arguments.words);
  const auto set = data::open(words.job.data.train, {.readers = &words.registries.readers});
  data::PackOptions options;
  options.segment_bytes = arguments.segment_megabytes * 1e6;
  if (isatty(STDERR_FILENO) == 1) options.progress = show_packed;
  for (const auto& written : data::pack(*set, path, options)) fmt::print("wrote {}\n", written);
  fmt::print("{} samples; use it with data.train.packed={}\n", telemetry::grouped(set->size()), path);
  return 0;
}

void add_data_pack(CLI::App& data, Action& run) {
  CLI::App* command = data.add_subcommand("pack", "Write a data set as one indexed, checksummed file.");
  command->footer(
      "The last argument is the file to write. Of a job, the whole training source is packed.\n\nExamples:\n  lockstep "
      "data pack images=/data/cifar10-train.tar.zst cifar10.pack\n  lockstep data pack job.yaml photos.pack "
      "--segment-megabytes 256");
  auto arguments = std::make_shared<PackArguments>();
  command->add_option("SOURCE", arguments->words, kDataWordsHelp)->expected(0, -1);
  command
      ->add_option("--segment-megabytes", arguments->segment_megabytes, "start another file after this many megabytes")
      ->check(at_least(0.001))
      ->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return pack(*arguments); }; });
}

}  // namespace

void add_data(CLI::App& program, Action& run) {
  CLI::App* command =
      program.add_subcommand("data", "Inspect and pack data sets, tokenize texts, and download well-known sets.");
  command->require_subcommand(1);
  command->footer("Example:\n  lockstep data info examples/cifar10-resnet20.yaml");
  add_data_info(*command, run);
  add_data_pack(*command, run);
  add_data_fetch(*command, run);
  add_data_tokenize(*command, run);
  add_data_detokenize(*command, run);
}

}  // namespace lockstep::cli
