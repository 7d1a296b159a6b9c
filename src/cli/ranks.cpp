#include "cli/ranks.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <memory>

#include "cli/report_error.hpp"
#include "cli/validators.hpp"
#include "comm/transport/mpi_folder.hpp"
#include "comm/transport/mpi_session.hpp"
#include "core/cgroup.hpp"
#include "core/say.hpp"
#include "device/gpu/driver.hpp"
#include "launch/child.hpp"
#include "launch/mpirun.hpp"
#include "launch/mpirun_output.hpp"
#include "launch/stop_signals.hpp"
#include "lockstep/error.hpp"
#include "lockstep/mpi.hpp"

namespace lockstep::cli {

namespace {

void check_world(const RankOptions& options, int found) {
  if (options.expected > 0 && found != options.expected) {
    throw Error(ExitCode::usage,
                fmt::format("--expect-world-size: expected {} ranks, found {}; check the hostfile and the "
                            "launcher's -n",
                            options.expected, found));
  }
}

void check_job(const RankOptions& options, const JobFile& job, int ranks) {
  if (options.limited_by_micro_batches) config::check_world_size(job, ranks);
}

int run_here(const RankOptions& options, const std::function<int(Communicator&)>& body) {
  const auto checked = [&](Communicator& communicator) {
    check_world(options, communicator.size());
    return body(communicator);
  };
  return run_on_mpi(checked, [&](const std::exception& error, const Communicator& /*rank*/) {
    if (options.on_error) options.on_error(error);
    return report(error);
  });
}

}  // namespace

int automatic_ranks(const Job& job) {
  if (job.device != DeviceChoice::cuda) return 1;
  const std::size_t gpus = job.devices.empty() ? device::ask_driver().gpus.size() : job.devices.size();
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(gpus), 1, std::max<std::int64_t>(job.micro_batches, 1));
}

int rank_count(const std::string& text, int automatic) {
  if (text == "auto") return automatic;
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc{} || end != text.data() + text.size() || ranks < 1) {
    throw Error(ExitCode::usage, fmt::format("--ranks: expected a positive number or auto, found '{}'", text));
  }
  return ranks;
}

namespace {

// What no rank has reported itself.
void explain(int code, bool killed, const launch::OpenMpiWords& words, bool out_of_memory) {
  if (code == 0 || code == static_cast<int>(ExitCode::interrupted) || words.rank_has_spoken()) return;
  if (killed) return say("lockstep: mpirun was killed by signal {}{}\n", code - 128, launch::why_mpirun_fails());
  const char* const memory = out_of_memory ? launch::kOutOfMemory : "";
  if (const auto death = words.death(-1); !death.empty()) return say("lockstep: {}{}\n", death, memory);
  const std::string block = words.first_block();
  if (!block.empty()) say("lockstep: mpirun ended with {}; Open MPI says:{}\n", code, block);
}

}  // namespace

int run_under_mpirun(int ranks, bool lossy) {
  const launch::MpirunOptions options{.ranks = ranks};
  auto command = launch::mpirun_command(options);
  for (auto& word : launch::own_command_line()) command.push_back(std::move(word));
  const std::int64_t memory_kills = Cgroups().memory_kills();
  launch::StopSignals signals;
  launch::MpirunOutput output(lossy);
  launch::Child mpirun(command, {.output = "",
                                 .environment = launch::mpirun_environment(options),
                                 .errors = output.errors(),
                                 .prints = output.prints(),
                                 .trains = launch::Trains::on_ranks});
  output.started();
  int passed_on = 0;
  while (!mpirun.poll()) {
    output.pass_on(std::chrono::milliseconds(10), signals.descriptor());
    for (const int come = signals.count(); passed_on < come; ++passed_on) {
      mpirun.signal(passed_on == 0 ? SIGUSR1 : SIGINT);
    }
  }
  const std::string unwritten = output.finish();
  comm::remove_dead_mpi_folders();  // left by ranks that were killed
  const int code = *mpirun.poll();
  if (code == 127) {
    say("lockstep: install openmpi-bin, or run without --ranks\n");
    return static_cast<int>(ExitCode::usage);
  }
  const bool at_once = passed_on > 1 && code != 0 && code != static_cast<int>(ExitCode::interrupted);
  if (at_once) return 128 + signals.last();  // mpirun's own code means nothing then
  explain(code, mpirun.killed(), output.words(), Cgroups().memory_kills() > memory_kills);
  if (code == 0 && !unwritten.empty()) {
    say("lockstep: cannot write to stdout: {}; what was printed is not complete\n", unwritten);
    return static_cast<int>(ExitCode::infrastructure);
  }
  return code > 128 ? static_cast<int>(ExitCode::infrastructure) : code;
}

void RankOptions::add_to(CLI::App& command) {
  command.add_option("--ranks", ranks, "start this many ranks on this machine (a number, or auto)");
  command.add_option("--expect-world-size", expected, "refuse any other number of ranks")->check(at_least(1));
}

void RunArguments::add_to(CLI::App& command, const std::string& json) {
  job.add_to(command);
  ranks.add_to(command);
  command.add_option("--log", log, fmt::format("people, or json: {} on stdout", json))
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
}

int run_on_ranks(const RankOptions& options, const std::function<int(Communicator&)>& body, int automatic) {
  if (!options.ranks.empty() && !comm::launched_by_mpi()) {
    const int ranks = rank_count(options.ranks, automatic);
    if (ranks > 1) return run_under_mpirun(ranks, options.is_training);
  }
  return run_here(options, body);
}

int run_on_ranks(const RankOptions& options, JobArgument& argument, const RankBody& body) {
  if (!options.ranks.empty() && !comm::launched_by_mpi()) {
    (void)rank_count(options.ranks, 1);  // a mistake here is reported before those in the job
    const JobFile job = argument.load(argument.registries(), options.need_data);
    const int ranks = rank_count(options.ranks, automatic_ranks(job));
    check_job(options, job, ranks);
    if (ranks > 1) {
      argument.require_file();
      return run_under_mpirun(ranks, options.is_training);
    }
  }
  return run_here(options, [&](Communicator& communicator) {
    if (communicator.size() > 1) argument.require_file();
    const Registries registries = argument.registries();
    const JobFile job = argument.load(registries, options.need_data);
    check_job(options, job, communicator.size());
    return body(communicator, job, registries);
  });
}

}  // namespace lockstep::cli
