// What the commands that run on several ranks share: alone, as a rank under a launcher, or as the launcher itself.
#pragma once

#include <functional>
#include <string>

#include "cli/job_argument.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/job.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::cli {

/// "3" -> 3; "auto" -> `automatic`. Throws Error(usage) for anything else.
[[nodiscard]] int rank_count(const std::string& text, int automatic);

/// What auto means for a job on this machine: with `device: cuda` one rank for each GPU that it may use, no more than
/// there are shards; else one with all cores.
[[nodiscard]] int automatic_ranks(const Job& job);

/// Runs this very command line under mpirun with `ranks` ranks and returns its exit code. The first SIGTERM or SIGINT
/// is passed on as SIGUSR1, since mpirun itself turns them into a kill after 1 s; a second signal is that kill, and the
/// code then 128 + its number.
int run_under_mpirun(int ranks);

struct RankOptions {
  std::string ranks;                                                   ///< empty, a number, or auto
  int expected = 0;                                                    ///< refuse any other number; 0: any
  bool limited_by_shards = false;                                      ///< more ranks than shards are a mistake
  bool need_data = true;                                               ///< a job whose data are not there is a mistake
  std::function<void(int code, const std::string& message)> on_error;  ///< of a rank, before it ends; may be empty

  void add_to(CLI::App& command);
};

/// What all commands of several ranks take: the job, --ranks, --expect-world-size and --log.
struct RunArguments {
  JobArgument job;
  RankOptions ranks;
  std::string log = "people";

  /// `json`: what --log json writes on stdout.
  void add_to(CLI::App& command, const std::string& json);
};

using RankBody = std::function<int(Communicator&, const JobFile&, const Registries&)>;

/// Calls `body` on every rank; returns the exit code. `automatic`: what --ranks auto means.
int run_on_ranks(const RankOptions& options, const std::function<int(Communicator&)>& body, int automatic = 1);

/// Loads the job and calls `body` on every rank; returns the exit code. A mistake in the command line or the job is
/// found before any rank starts.
int run_on_ranks(const RankOptions& options, JobArgument& argument, const RankBody& body);

}  // namespace lockstep::cli
