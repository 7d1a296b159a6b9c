// What `lockstep bench hosts` does on each rank: one report on what a job would stand on, and what is wrong with it.
#pragma once

#include <string>
#include <vector>

#include "lockstep/communicator.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

struct RankFacts {
  std::string host;
  std::string device;       ///< "NVIDIA H100 80GB HBM3", or the processor; empty: see `problem`
  bool is_gpu = false;      ///< `device`
  int gpus = 0;             ///< that the rank sees; where none is asked for, 0
  std::string problem;      ///< why it has not the GPU that it shall compute on
  ExitCode problem_code{};  ///< of that
  std::string fingerprint;
  double clock_ahead = 0;  ///< seconds, of rank 0's wall clock
  double clock_error = 0;  ///< no further off than this
};

struct HostLimits {
  bool one_kind = true;         ///< another processor, GPU or library on a rank is wrong
  double clock_seconds = 1;     ///< by which a host's clock may differ from rank 0's
  double bytes_per_second = 0;  ///< least bus bandwidth of the all-reduce
};

struct Verdict {
  ExitCode code = ExitCode::usage;
  std::string text;  ///< what is wrong, and what to try
};

/// Whether every rank has what it shall compute on.
[[nodiscard]] bool can_compute(const std::vector<RankFacts>& facts);

/// In order of the ranks; the first rank of a host speaks for its clock. `bytes_per_second`: of the all-reduce; not
/// looked at where not every rank can compute. Empty: nothing is wrong. `facts`: one a rank, at least one.
[[nodiscard]] std::vector<Verdict> judge_hosts(const std::vector<RankFacts>& facts, double bytes_per_second,
                                               const HostLimits& limits);

/// `wanted`: cpu, or cuda, which wants a GPU for each rank. Rank 0 prints. Throws Error on rank 0 where something is
/// wrong, once the whole report is printed.
int report_hosts(Communicator& communicator, const HostLimits& limits, const std::string& wanted);

}  // namespace lockstep::cli
