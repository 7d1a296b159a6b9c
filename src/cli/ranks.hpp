// Shared by the commands that run on several ranks: alone, as a rank under a launcher, or as the launcher itself.
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

/// The number of ranks that `auto` means for a job on this machine: with `device: cuda` one for each visible GPU, but
/// no more than there are micro-batches; otherwise one rank with all cores.
[[nodiscard]] int automatic_ranks(const Job& job);

/// Runs this same command line under mpirun with `ranks` ranks and returns its exit code. The first SIGTERM or SIGINT
/// is passed on as SIGUSR1, since mpirun itself would kill the ranks 1 s after either; a second signal does kill them,
/// and the code is then 128 + its number.
int run_under_mpirun(int ranks, bool lossy);

struct RankOptions {
  std::string ranks;                      ///< empty, a number, or auto
  int expected = 0;                       ///< refuse any other number; 0: accept any
  bool limited_by_micro_batches = false;  ///< more ranks than micro-batches are an error
  bool is_training = false;               ///< it does not wait for whoever reads what is printed
  bool need_data = true;                  ///< missing data files are an error
  /// called on a rank before it ends with an error; may be empty
  std::function<void(const std::exception& error)> on_error;

  void add_to(CLI::App& command);
};

/// Options shared by all commands that run a job on several ranks: the job, --ranks, --expect-world-size and --log.
struct RunArguments {
  JobArgument job;
  RankOptions ranks;
  std::string log = "people";

  /// `json`: what --log json writes to stdout.
  void add_to(CLI::App& command, const std::string& json);
};

using RankBody = std::function<int(Communicator&, const JobFile&, const Registries&)>;

/// Calls `body` on every rank; returns the exit code. `automatic`: what --ranks auto means.
int run_on_ranks(const RankOptions& options, const std::function<int(Communicator&)>& body, int automatic = 1);

/// Loads the job and calls `body` on every rank; returns the exit code. Mistakes in the command line or the job are
/// found before any rank starts.
int run_on_ranks(const RankOptions& options, JobArgument& argument, const RankBody& body);

}  // namespace lockstep::cli
