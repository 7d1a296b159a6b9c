// The trainer as a C++ API: registries of ops and models, the data, and one call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/callback.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/events.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/job.hpp"
#include "lockstep/micro_batch_balancer.hpp"
#include "lockstep/op.hpp"
#include "lockstep/optimizer.hpp"
#include "lockstep/run_watcher.hpp"
#include "lockstep/schedule.hpp"

namespace lockstep {

/// A shared library that has added to the registries (lockstep/plugin.hpp).
struct Plugin {
  std::string path;    ///< as the job names it
  std::string sha256;  ///< of the file
};

/// What a job file may name. Start from built_in() and add your own.
struct Registries : DataRegistries {
  OpRegistry ops;
  ModelRegistry models;
  OptimizerRegistry optimizers;
  ScheduleRegistry schedules;
  std::vector<Plugin> plugins = {};  ///< in the order in which they were opened

  static Registries built_in();
  /// The built-in ones, and what the plugins of a job add. The arguments are those of load_job(). Runs the plugins'
  /// code. Throws Error(configuration) that names the plugin and where the job does.
  static Registries of_job(const std::string& path, const std::vector<std::string>& overrides = {});
};

/// Loads a job file with overrides `key=value`. An empty path means the embedded digits job; the directory of a run or
/// a checkpoint, the job that it was trained with. `need_data`: the files that it names must exist. All mistakes are
/// thrown together as one Error(configuration). `registries`: with the job's plugins, if it names some (of_job()).
[[nodiscard]] JobFile load_job(const std::string& path, const std::vector<std::string>& overrides,
                               const Registries& registries, bool need_data = true);

struct TrainerOptions {
  std::string resume = "auto";             ///< auto | never | path of a checkpoint
  bool handle_signals = false;             ///< SIGTERM, SIGINT, SIGUSR1, SIGHUP: checkpoint at the next step and end
  bool signals_passed_on = false;          ///< the parent process passes them on as SIGUSR1: not a second request
  events::Sink* sink = nullptr;            ///< receives the events, on rank 0
  std::vector<Callback*> callbacks = {};   ///< in the order in which they are called; each rank has its own objects
  MicroBatchBalancer* balancer = nullptr;  ///< instead of the job's; used on rank 0, but every rank says whether there
                                           ///< is one
  RunWatcher* watcher = nullptr;
  std::string program_digest = {};  ///< compared between ranks at start; empty: not compared
  std::int64_t stop_at = 0;         ///< end after this step, as after a signal; 0: never
  /// The checkpoint that the run resumes from may be of a job of another length, or with other values of what can
  /// change between two steps: the learning rate, say. The checkpoints of the run say which settings held until which
  /// step.
  bool change_settings = false;
  /// Records a timeline of these steps on every rank, in `trace` in the run directory; rank 0's value counts.
  ProfileSteps profile = {};
  bool lowered = true;  ///< false: run each op with its own kernel, without lowering the graph; the bits are the same
  std::map<std::string, double> restarts = {};  ///< restarts so far of the launch that this run belongs to, by reason;
                                                ///< for metrics
};

struct TrainResult {
  std::int64_t steps = 0;    ///< steps done in total, including those before a resume
  std::int64_t samples = 0;  ///< samples that this call trained on
  double seconds = 0;
  double samples_per_second = 0;
  double loss = 0;                        ///< mean over the last step
  std::map<std::string, double> metrics;  ///< of the last evaluation: "loss", "accuracy", ...
  std::map<std::string, double> phases;   ///< seconds of this rank, by phase
  std::string parameters_sha256;
  /// By a signal, a stop request or stop_at; a checkpoint was written unless the job never writes one.
  bool interrupted = false;
};

/// Runs the job on all ranks of the communicator; every rank calls it, on threads of its own. Throws Error, also for
/// what a job file could not say, such as a batch of 0 samples. The result's bits (parameters_sha256)
/// do not depend on the number of ranks and threads unless the job says `exact: never`.
TrainResult train_job(const JobFile& job, Communicator& communicator, const Registries& registries,
                      const TrainerOptions& options = {}, const DataSets& data = {});

}  // namespace lockstep
