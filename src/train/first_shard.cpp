#include "train/first_shard.hpp"

#include <fmt/format.h>

#include "comm/transport/recorded.hpp"
#include "core/spans.hpp"
#include "data/loader.hpp"
#include "graph/model_graph.hpp"
#include "optim/loss_scaling.hpp"
#include "train/shard_hash.hpp"
#include "train/start_check.hpp"

namespace lockstep::train {

namespace {

data::LoaderOptions first_step_of(const RunContext& run, const Graph& graph) {
  const Job& job = run.job;
  data::LoaderOptions options;
  options.batch = job.batch_size;
  options.shards = static_cast<int>(job.shards);
  options.seed = job.seed;
  options.last_step = 1;
  options.threads = 1;
  options.depth = 1;
  options.inputs = input_names(graph);
  options.recorder = comm::recorder_of(run.communicator);
  return options;
}

std::string hash_of_first_shard(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                                const exec::ExecutorOptions& how) {
  const Job& job = run.job;
  data::Loader loader(*data.train, data.pipeline(*data.train, true), first_step_of(run, graph));
  loader.assign(0, {0});
  // An executor of its own: the run's keeps what its GPU fills inputs with from its first use on.
  exec::WorkerPool pool(1);
  exec::Executor executor(graph, Mode::training, run.device, pool, job.seed, how);
  const double scale = optim::first_loss_scale(job.precision, job.loss_scale).scale;
  const double factor = scale > 0 ? scale / optim::targets_in_mean(graph, job.shards) : 1;
  return hash_of_shard(executor, graph, run.device, job.seed, loader, static_cast<float>(factor));
}

}  // namespace

double compare_first_shard(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                           const exec::ExecutorOptions& how, checkpoint::Progress& progress) {
  if (run.job.exact == Exactness::never || !run.device.has_memory_to_spare()) return 0;
  const auto start = Clock::now();
  const ActivityScope activity(comm::recorder_of(run.communicator).get(), "first shard", 0);
  const std::string hash = hash_of_first_shard(run, data, graph, how);
  const double seconds = seconds_since(start);
  progress.fingerprint += ", first shard " + hash;
  compare_bits(run, "first shard", "loss and gradients " + hash, progress);
  return seconds;
}

}  // namespace lockstep::train
