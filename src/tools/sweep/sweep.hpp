// A sweep, run to its end: asks the method for trials, trains them in slots at the same time, notes everything in the
// journal, and keeps the results' files current.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/sweep.hpp"
#include "launch/host_pool.hpp"

namespace lockstep::sweep {

struct SweepRunOptions {
  int ranks = 1;                      ///< of all trials that run at the same time: devices in use
  int ranks_per_trial = 1;            ///< so ranks / ranks_per_trial trials run at the same time
  int retries = 2;                    ///< of a trial that ended with an error
  int threads = 0;                    ///< of each rank; 0: as the job says
  int trials_per_gpu = 1;             ///< that share one at the same time, if each has one rank
  std::vector<std::int64_t> devices;  ///< GPUs of a host, one for each of its ranks; empty: the CPU, or slices
  std::vector<std::string> slices;    ///< of this machine's GPUs (MIG), by CUDA's names, one for each rank
  int prometheus_port = 0;            ///< of the job: a slot's ranks are scraped from here on, plus its first rank;
                                      ///< 0: never
  std::optional<launch::PoolOptions> pool;  ///< hosts whose slots train trials; none: this machine alone
  double lock_seconds = 0;                  ///< to wait for another sweep to release the directory
  bool json = false;                        ///< the journal's lines go to stdout, instead of the table to stderr
};

/// Returns the exit code: 0 also if trials have failed, as long as one has not; of an ensemble, if no member has
/// failed. Throws Error(diverged) otherwise: the same again would find them failed.
int run_sweep(const config::SweepFile& sweep, const SweepRunOptions& options, const config::Catalogue& catalogue);

}  // namespace lockstep::sweep
