// What the commands that run on several ranks share: alone, as a rank under a launcher, or as the launcher itself.
#pragma once

#include <functional>
#include <string>

#include "cli/job_argument.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::cli {

struct RankOptions {
  std::string ranks;               ///< empty, a number, or auto
  int expected = 0;                ///< refuse any other number; 0: any
  bool limited_by_shards = false;  ///< more ranks than shards are a mistake

  void add_to(CLI::App& command);
};

using RankBody = std::function<int(Communicator&, const Job&, const Registries&)>;

/// Loads the job and calls `body` on every rank; returns the exit code. A mistake in the command line or the job is
/// found before any rank starts.
int run_on_ranks(const RankOptions& options, JobArgument& argument, const RankBody& body);

}  // namespace lockstep::cli
