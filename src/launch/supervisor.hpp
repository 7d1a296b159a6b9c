// The supervisor: makes attempt after attempt until the job is done, is stopped, cannot succeed, or makes no progress.
#pragma once

#include <string>
#include <vector>

#include "launch/hang_watch.hpp"
#include "launch/hosts.hpp"
#include "lockstep/job.hpp"

namespace lockstep::launch {

struct LaunchOptions {
  std::vector<std::string> words;         ///< the job file and overrides, as given
  std::string resume = "auto";            ///< as of `train`; `never` is for the first attempt only
  std::string profile;                    ///< steps to trace, for `train --profile`; empty: none
  int ranks = 0;                          ///< at most; 0: as many as there are slots
  std::string hosts, hostfile, discover;  ///< where hosts come from; all empty: Slurm's allocation, or this machine
  std::string agent;                      ///< runs a command on another host; empty: srun in Slurm's allocation, or ssh
  std::string listen;                     ///< address of the control socket; empty: chosen by the routes to the hosts
  int max_restarts = 3;                   ///< without progress
  double retry_seconds = 300;             ///< while a fault may pass, whatever `max_restarts`
  HangLimits limits;
  double read_hosts_again_seconds = 5;
  double lock_seconds = 0;              ///< to wait for another launch to release the run directory
  double ask_hosts_again_seconds = 30;  ///< hosts that did not answer
  double await_hosts_seconds = 600;     ///< as long as none answers
  bool replaces_unfit = false;          ///< hosts are pods: one that is left out ends, to be replaced
  bool json = false;
};

/// Returns the exit code.
int launch(const LaunchOptions& options, const Job& job, const CanonicalJob& canonical);

/// `lockstep launch --end MARK` on another host: kills what is left of a launch there. Returns the exit code.
int end_launch(const std::string& mark);

}  // namespace lockstep::launch
