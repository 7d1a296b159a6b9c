// lockstep train: one rank alone, a rank under a launcher, or the launcher itself (--ranks).
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/report_error.hpp"
#include "cli/self_launch.hpp"
#include "comm/launcher.hpp"
#include "comm/mpi_session.hpp"
#include "core/digest.hpp"
#include "lockstep/error.hpp"
#include "telemetry/event_log.hpp"
#include "telemetry/progress.hpp"

namespace lockstep::cli {

namespace {

struct TrainArguments {
  JobArgument job;
  std::string ranks;         // empty, a number, or auto
  std::string resume = "auto";
  std::string log = "people";
  int expected_ranks = 0;
  std::int64_t stop_at = 0;
};

// A few megabytes: some milliseconds. A stale binary on one host is then named, not trained with.
std::string program_digest() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Sha256 hash;
  std::vector<char> block(1 << 20);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    hash.add(std::string_view(block.data(), static_cast<std::size_t>(file.gcount())));
  }
  return hash.hex();
}

void print_result(const Job& job, const TrainResult& result) {
  std::string metrics;
  for (const auto& [name, value] : result.metrics) metrics += fmt::format("  {} {:.4f}", name, value);
  fmt::print(stderr, "\n{}: {} steps{}\n", job.name, result.steps, metrics);
  fmt::print(stderr, "parameters sha256: {}\n", result.parameters_sha256);
}

int train_rank(TrainArguments& arguments, Communicator& communicator) {
  const Registries registries = Registries::built_in();
  const Job job = arguments.job.load(lockstep::train::catalogue_of(registries));
  config::check_world_size(job, communicator.size());
  TrainerOptions options;
  options.resume = arguments.resume;
  options.handle_signals = true;
  options.stop_at = arguments.stop_at;
  options.program_digest = program_digest();
  std::unique_ptr<telemetry::Sink> sink;
  if (communicator.rank() == 0) {
    sink = arguments.log == "json" ? telemetry::make_json_log(stdout)
                                   : telemetry::make_progress(stderr, telemetry::progress_options_for(stderr));
    options.sink = sink.get();
  }
  const TrainResult result = train_job(job, communicator, registries, options);
  if (communicator.rank() == 0 && arguments.log != "json") print_result(job, result);
  return static_cast<int>(result.interrupted ? ExitCode::interrupted : ExitCode::done);
}

// A mistake that all ranks make is told once: rank 0 speaks first and ends the others.
int end_all(const std::exception& error, Communicator& communicator) {
  if (communicator.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const int code = report(error);
  if (communicator.size() > 1) communicator.abort(code);
  return code;
}

int train_here(TrainArguments& arguments) {
  const auto launcher = comm::launcher_info();
  auto communicator = comm::launched_by_mpi() ? comm::make_mpi_communicator() : make_single_communicator();
  try {
    const int found = communicator->size();
    if (launcher.ranks > 1 && found != launcher.ranks) {
      throw Error(ExitCode::usage,
                  fmt::format("{}={} says that {} ranks were started, but MPI sees {}; start lockstep with the mpirun of the "
                              "MPI that it was built with",
                              launcher.variable, launcher.ranks, launcher.ranks, found));
    }
    if (arguments.expected_ranks > 0 && found != arguments.expected_ranks) {
      throw Error(ExitCode::usage, fmt::format("--expect-world-size: expected {} ranks, found {}; check the hostfile and the "
                                               "launcher's -n",
                                               arguments.expected_ranks, found));
    }
    return train_rank(arguments, *communicator);
  } catch (const std::exception& error) {
    return end_all(error, *communicator);
  }
}

int train(TrainArguments& arguments) {
  const bool launched = comm::launched_by_mpi();
  if (!arguments.ranks.empty() && !launched) {
    // Find mistakes before any rank starts.
    TrainArguments copy = arguments;
    const Job job = copy.job.load(lockstep::train::catalogue_of(Registries::built_in()));
    const int ranks = rank_count(arguments.ranks);
    config::check_world_size(job, ranks);
    if (ranks > 1) return run_under_mpirun(ranks);
  }
  return train_here(arguments);
}

}  // namespace

void add_train(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("train", "Train a job; without a file, the embedded digits.");
  command->footer(
      "Examples:\n  lockstep train examples/cifar10-resnet20.yaml batch_size=256\n  lockstep train --ranks 2\n"
      "  mpirun -n 4 lockstep train job.yaml");
  auto arguments = std::make_shared<TrainArguments>();
  arguments->job.add_to(*command);
  command->add_option("--ranks", arguments->ranks, "start this many ranks on this machine (a number, or auto)");
  command->add_option("--resume", arguments->resume, "auto, never, or the path of a checkpoint")->capture_default_str();
  command->add_option("--log", arguments->log, "people (on stderr) or json (a line an event on stdout)")
      ->check(CLI::IsMember({"people", "json"}))
      ->capture_default_str();
  command->add_option("--expect-world-size", arguments->expected_ranks, "refuse any other number of ranks")
      ->check(CLI::PositiveNumber);
  command->add_option("--stop-at", arguments->stop_at, "checkpoint after this step and end with 75, as after a signal")
      ->check(CLI::PositiveNumber);
  command->callback([&run, arguments] { run = [arguments] { return train(*arguments); }; });
}

}  // namespace lockstep::cli
