// The trainer, driven from C++: registries of ops and models, the data, and one call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/augment.hpp"
#include "lockstep/callback.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/events.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/job.hpp"
#include "lockstep/op.hpp"
#include "lockstep/optimizer.hpp"
#include "lockstep/run_watcher.hpp"
#include "lockstep/schedule.hpp"
#include "lockstep/shard_balancer.hpp"

namespace lockstep {

/// What a job file may name. Start from built_in() and add your own.
struct Registries {
  OpRegistry ops;
  ModelRegistry models;
  OptimizerRegistry optimizers;
  ScheduleRegistry schedules;
  AugmentRegistry augmentations;
  static Registries built_in();
};

/// A job file with overrides `key=value`; an empty path is the embedded digits, the directory of a run or of a
/// checkpoint the job that it was trained with. `need_data`: the files that it names must exist. All mistakes are
/// thrown together as one Error(configuration).
[[nodiscard]] JobFile load_job(const std::string& path, const std::vector<std::string>& overrides,
                               const Registries& registries, bool need_data = true);

struct TrainerOptions {
  std::string resume = "auto";            ///< auto | never | path of a checkpoint
  bool handle_signals = false;            ///< SIGTERM, SIGINT, SIGUSR1: checkpoint at the next step and end
  events::Sink* sink = nullptr;           ///< receives the events, on rank 0
  std::vector<Callback*> callbacks = {};  ///< in the order in which they are called; each rank has its own
  ShardBalancer* balancer = nullptr;  ///< in place of the job's; on rank 0, but every rank says whether there is one
  RunWatcher* watcher = nullptr;
  std::string program_digest = {};  ///< compared between ranks at start; empty: not compared
  std::int64_t stop_at = 0;         ///< end after this step as after a signal; 0: never
  /// A timeline of these steps of every rank, in `trace` of the run directory; rank 0's counts.
  ProfileSteps profile = {};
  bool lowered = true;  ///< false: each op by its own kernel, as the graph stands. The bits are the same
  std::map<std::string, double> restarts = {};  ///< by reason, of the launch that this run is part of; for metrics
};

struct TrainResult {
  std::int64_t steps = 0;    ///< done in all, also before a resume
  std::int64_t samples = 0;  ///< trained on by this call
  double seconds = 0;
  double samples_per_second = 0;
  double loss = 0;                        ///< mean of the last step
  std::map<std::string, double> metrics;  ///< of the last evaluation: "loss", "accuracy", ...
  std::map<std::string, double> phases;   ///< seconds of this rank by name
  std::string parameters_sha256;
  /// By a signal, a stop request or stop_at; a checkpoint was written unless the job never writes one.
  bool interrupted = false;
};

/// Runs the job on all ranks of the communicator; every rank calls it. The result's bits (parameters_sha256)
/// do not depend on the number of ranks and threads unless the job says `exact: never`.
TrainResult train_job(const JobFile& job, Communicator& communicator, const Registries& registries,
                      const TrainerOptions& options = {}, const DataSets& data = {});

}  // namespace lockstep
