#include "cli/ranks.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/report_error.hpp"
#include "cli/self_launch.hpp"
#include "cli/validators.hpp"
#include "comm/transport/launcher.hpp"
#include "lockstep/error.hpp"
#include "lockstep/exit_code.hpp"
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

JobFile load(const RankOptions& options, JobArgument& argument, const Registries& registries) {
  return argument.load(train::catalogue_of(registries), options.need_data);
}

void check_job(const RankOptions& options, const JobFile& job, int ranks) {
  if (options.limited_by_shards) config::check_world_size(job, ranks);
}

int run_here(const RankOptions& options, const std::function<int(Communicator&)>& body) {
  const auto checked = [&](Communicator& communicator) {
    check_world(options, communicator.size());
    return body(communicator);
  };
  return run_on_mpi(checked, [&](const std::exception& error, const Communicator& /*rank*/) {
    if (options.on_error) options.on_error(exit_code(error), error.what());
    return report(error);
  });
}

}  // namespace

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
    if (ranks > 1) return run_under_mpirun(ranks);
  }
  return run_here(options, body);
}

int run_on_ranks(const RankOptions& options, JobArgument& argument, const RankBody& body) {
  const Registries registries = Registries::built_in();
  if (!options.ranks.empty() && !comm::launched_by_mpi()) {
    (void)rank_count(options.ranks, 1);  // a mistake there is reported before those of the job
    const JobFile job = load(options, argument, registries);
    const int ranks = rank_count(options.ranks, automatic_ranks(job));
    check_job(options, job, ranks);
    if (ranks > 1) return run_under_mpirun(ranks);
  }
  return run_here(options, [&](Communicator& communicator) {
    const JobFile job = load(options, argument, registries);
    check_job(options, job, communicator.size());
    return body(communicator, job, registries);
  });
}

}  // namespace lockstep::cli
