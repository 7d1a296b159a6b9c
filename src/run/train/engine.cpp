#include "run/train/engine.hpp"

#include "comm/reduce/reduce_plan.hpp"
#include "comm/transport/recorded.hpp"
#include "graph/model_graph.hpp"
#include "graph/weight_order.hpp"
#include "run/train/agreed_algorithms.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::train {

Engine::Engine(const Run& of_run, int workers) : run(of_run), pool(workers) {
  const exec::Device& device = run.context.device;
  const auto make = [&](const std::vector<std::string>& algorithms) {
    const exec::ExecutorOptions how = how_to_execute(algorithms);
    return run.parts.is_cut()
               ? std::make_unique<exec::Executor>(run.parts.of_model(), Mode::training, device, pool, run.job.seed, how)
               : std::make_unique<exec::Executor>(run.graph, Mode::training, device, pool, run.job.seed, how);
  };
  executor = computes_alike(run.job, device) ? make_with_algorithms_of_first_rank(run.parts.group(), make) : make({});
}

exec::ExecutorOptions Engine::how_to_execute(const std::vector<std::string>& algorithms) const {
  return {.lowered = run.options.lowered,
          .recompute = run.job.recompute,
          .algorithms = algorithms,
          .keeps_weights = !divides_parameters(run.job.parallel.sharding)};
}

void Engine::make_model() {
  const JobFile& job = run.job;
  Communicator& group = run.parts.group();
  const bool sharded = job.parallel.sharding != Sharding::none && group.size() > 1;
  const auto shared =
      run.parts.is_cut() ? optim::shared_weights(run.parts.parts(), run.parts.own()) : std::vector<std::size_t>();
  buckets = exec::gradient_buckets(executor->program(), job.bucket_bytes, job.micro_batches, sharded, shared,
                                   stored_in_another_order(executor->graph()),
                                   run.context.device.spreads_owners() ? 0 : group.size());
  buckets.spread_owners = run.context.device.spreads_owners();
  if (sharded) {
    slices = std::make_unique<optim::ModelSlices>(
        group, executor->graph(), executor->program(), buckets,
        optim::ModelSlices::Options{.keeps_parameters = run.context.device.uses_host_memory(),
                                    .divides_parameters = divides_parameters(job.parallel.sharding),
                                    .unit_bytes = job.bucket_bytes,
                                    .workers = pool.size(),
                                    .timeout = run.context.timeout()});
  }
  const optim::PlacedParts placed{run.parts.parts(), run.parts.own(), run.parts.ranks(), run.communicator,
                                  run.context.timeout()};
  const optim::UpdaterSetup setup{executor->graph(),
                                  executor->program(),
                                  buckets,
                                  run.context.registries.optimizers,
                                  job.optimizer,
                                  job.clip_norm,
                                  static_cast<int>(job.micro_batches),
                                  job.precision == Precision::fp16,
                                  run.parts.is_cut() ? &placed : nullptr,
                                  slices.get(),
                                  run.steps_per_epoch,
                                  &group,
                                  run.context.timeout()};
  const comm::ReducerOptions options = reducer_options();
  auto step = run.backend->make_step(run.context, group, setup, buckets, options, pool);
  reducer = std::move(step.reducer);
  updater = std::move(step.updater);
  if (run.parts.is_cut()) {
    scalars = comm::make_reducer(run.communicator,
                                 {.buckets = {}, .micro_batches = static_cast<int>(job.micro_batches)}, options);
  }
  model = updater->make_model(job.seed);
}

comm::ReducerOptions Engine::reducer_options() const {
  // A wait of the reducer may be for a rank that waits for another part: that rank gives up first, and knows the cause.
  const auto timeout = run.context.timeout() * (run.parts.is_cut() ? 3 : 2) / 2;
  return {.exact = run.job.exact != Exactness::never,
          .timeout = timeout,
          .watch = run.parts.pulse(),
          .scalars_per_micro_batch = exec::scalars_per_micro_batch(run.graph),
          .streamed = divides_gradients(run.job.parallel.sharding),
          .workers = pool.size(),
          .open_elements = exec::max_open_elements(executor->program(), buckets),
          .stop = &pool.failed()};
}

void Engine::begin_step(std::uint64_t step, const std::vector<comm::MicroBatchAssignment>& assignments,
                        const comm::MicroBatchAssignment& own) {
  reducer->begin_step(step, own);
  if (!scalars) return;
  const std::size_t loss = run.parts.of_loss();
  comm::MicroBatchAssignment losses;  // which ranks have losses, among all ranks
  losses.micro_batches_of_rank.resize(run.communicator.size());
  for (std::size_t i = 0; i < run.parts.ranks()[loss].size(); ++i) {
    losses.micro_batches_of_rank[run.parts.ranks()[loss][i]] = assignments[loss].micro_batches_of_rank[i];
  }
  scalars->begin_step(step, losses);
}

comm::Scalars Engine::finish(const std::function<comm::OwnScalars()>& own) {
  if (!scalars) return reducer->finish(own);
  reducer->finish();
  comm::OwnScalars mine = own();
  if (run.parts.own() != run.parts.of_loss()) mine.of_micro_batches = {};
  return scalars->finish([&] { return mine; });
}

void Engine::place_model(const comm::MicroBatchAssignment& own, bool evaluates) {
  const comm::ReducerOptions options = reducer_options();
  const comm::Hosts hosts(run.parts.group().topology());
  placed_data = run.backend->place_data(run.context, run.data, run.parts.graph(),
                                        {.executor = *executor,
                                         .updater = *updater,
                                         .model = model,
                                         .reduced = {buckets, own, hosts, run.parts.group().rank(), options},
                                         .evaluates = evaluates});
  executor->fill_inputs(placed_data.train);
  updater->begin(model);
  executor->use(updater->values(model));
}

void Engine::make_loader(std::int64_t first_step) {
  const JobFile& job = run.job;
  data::LoaderOptions options;
  options.batch = job.batch_size;
  options.micro_batches = job.micro_batches;
  options.seed = job.seed;
  options.first_step = first_step;
  options.last_step = std::max(run.steps, first_step);
  options.cache_bytes = job.data.cache == SampleCache::memory ? job.data.cache_bytes : 0;
  options.threads = job.data.threads;
  options.depth = job.data.depth;
  options.max_threads = exec::max_loader_threads(run.communicator);
  options.mix = job.data.mix;
  options.drawn = placed_data.train != nullptr;
  options.inputs = input_names(run.parts.graph());
  options.recorder = comm::recorder_of(run.communicator);
  loader = std::make_unique<data::Loader>(*run.data.train, run.data.pipeline(*run.data.train, true), options);
}

double Engine::bytes_of_step(const comm::MicroBatchAssignment& assignment) const {
  const comm::Hosts hosts(run.parts.group().topology());
  const int rank = run.parts.group().rank();
  const comm::PlannedBytes bytes = comm::bytes_of(
      comm::reduce_plan(assignment, hosts, buckets, rank, divides_gradients(run.job.parallel.sharding)), hosts);
  const std::size_t micro_batches = assignment.micro_batches_of_rank[rank].size();
  std::size_t to_parts = run.parts.is_cut() ? micro_batches * run.parts.of_model().links.bytes_sent() : 0;
  if (const auto* parts = updater->other_parts()) to_parts += parts->bytes_of_exchange();
  return bytes.inside_host + bytes.between_hosts + to_parts;
}

double Engine::bytes_sent() const {
  const auto reduced = reducer->statistics();
  const auto* const parts = updater->other_parts();
  return reduced.shared_memory_bytes + reduced.network_bytes + executor->times().part_bytes +
         (parts == nullptr ? 0 : parts->bytes_sent());
}

}  // namespace lockstep::train
