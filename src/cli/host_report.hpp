// What `lockstep bench hosts` does on each rank: one report on the hosts that a job would run on, and what is wrong
// with them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/communicator.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

struct RankFacts {
  std::string host;
  std::string device;       ///< "NVIDIA H100 80GB HBM3", or the processor; empty: see `problem`
  bool is_gpu = false;      ///< whether `device` is a GPU
  int gpus = 0;             ///< that the rank sees; 0 if a CPU is wanted
  std::string problem;      ///< why the rank does not have the device that it should compute on
  ExitCode problem_code{};  ///< of `problem`
  std::string fingerprint;
  double clock_ahead = 0;  ///< seconds by which its wall clock is ahead of rank 0's
  double clock_error = 0;  ///< bound on the error of `clock_ahead`
};

struct HostLimits {
  bool one_kind = true;         ///< whether all ranks must have the same processor, GPU and libraries
  double clock_seconds = 1;     ///< how much a host's clock may differ from rank 0's
  double bytes_per_second = 0;  ///< minimum bus bandwidth of the all-reduce
};

struct Verdict {
  ExitCode code = ExitCode::usage;
  std::string text;  ///< what is wrong, and what to try
};

/// Whether every rank has the device that it should compute on.
[[nodiscard]] bool can_compute(const std::vector<RankFacts>& facts);

/// Verdicts in the order of the ranks; empty: nothing is wrong. A host's clock is judged by its first rank.
/// `bytes_per_second`: bus bandwidth of the all-reduce; ignored unless every rank can compute. `facts`: one for each
/// rank, at least one.
[[nodiscard]] std::vector<Verdict> judge_hosts(const std::vector<RankFacts>& facts, double bytes_per_second,
                                               const HostLimits& limits);

/// `wanted`: cpu, or cuda, which requires a GPU for each rank. Rank 0 prints the whole report; if something is wrong,
/// it throws Error afterwards.
int report_hosts(Communicator& communicator, const HostLimits& limits, const std::string& wanted);

}  // namespace lockstep::cli
