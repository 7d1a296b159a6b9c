// lockstep data pack: a data set as one indexed, checksummed file, so that each rank reads only what it needs.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/data_commands.hpp"
#include "cli/data_words.hpp"
#include "cli/validators.hpp"
#include "data/open.hpp"
#include "data/pack.hpp"
#include "lockstep/error.hpp"
#include "telemetry/text.hpp"

namespace lockstep::cli {

namespace {

struct PackArguments {
  std::vector<std::string> words;
  double segment_megabytes = 1024;
};

void show_packed(std::int64_t done, std::int64_t all) {
  if (done % 512 != 0 && done != all) return;
  fmt::print(stderr, "\r{} of {} samples{}", telemetry::grouped(done), telemetry::grouped(all),
             done == all ? "\n" : "");
}

int pack(PackArguments& arguments) {
  if (arguments.words.size() < 2) {
    throw Error(ExitCode::usage, fmt::format("data pack: expected a source and the file to write, found {} argument{}; "
                                             "for example: lockstep data pack images=photos photos.pack",
                                             arguments.words.size(), arguments.words.size() == 1 ? "" : "s"));
  }
  const std::string path = arguments.words.back();
  arguments.words.pop_back();
  const Registries registries = Registries::built_in();
  const DataWords words = read_data_words(arguments.words, registries);
  const auto set = data::open(words.job.data.train);
  data::PackOptions options;
  options.segment_bytes = static_cast<std::int64_t>(arguments.segment_megabytes * 1e6);
  if (isatty(STDERR_FILENO) == 1) options.progress = show_packed;
  for (const auto& written : data::pack(*set, path, options)) fmt::print("wrote {}\n", written);
  fmt::print("{} samples; use it with data.train.packed={}\n", telemetry::grouped(set->size()), path);
  return 0;
}

}  // namespace

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

}  // namespace lockstep::cli
