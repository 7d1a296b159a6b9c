// How a run begins: the comparison between ranks, the model that it starts from, and the placement of model and data.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "comm/transport/host_leader.hpp"
#include "comm/transport/work_together.hpp"
#include "graph/flattened.hpp"
#include "graph/workload.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/train/agreed_algorithms.hpp"
#include "run/train/known_speeds.hpp"
#include "run/train/memory_check.hpp"
#include "run/train/not_finite.hpp"
#include "run/train/same_run.hpp"
#include "run/train/start_check.hpp"
#include "run/train/training.hpp"
#include "step/optim/weight_average.hpp"

namespace lockstep::train {

namespace {

/// For who reads a checkpoint into PyTorch: which tensors follow an image's order, and the image's sizes.
std::string flattened_text(const Graph& graph) {
  const FlattenedTensors found = flattened_tensors(graph);
  nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
  const auto add = [&](const std::string& name, const char* dimension, const FlattenedImage& image) {
    if (image.elements() > 1) tensors[name][dimension] = {image.height, image.width, image.channels};
  };
  for (const auto& [name, tensor] : found.by_name) {
    add(name, "columns", tensor.columns);
    add(name, "rows", tensor.rows);
  }
  return nlohmann::ordered_json{{"tensors", tensors}, {"unclear", found.unclear}, {"unmade", found.unmade}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

Training::Training(const JobFile& job, Communicator& communicator, const Registries& registries,
                   const TrainerOptions& options, const DataSets& own)
    : run_(job, communicator, registries, options, own),
      signals_(options.handle_signals, options.signals_passed_on),
      content_check_(run_.context, run_.data.sources),
      bad_samples_(run_.context, run_.data.replaced),
      balancing_(run_.context, run_.parts),
      engine_(run_, balancing_.workers()),
      whole_model_(run_.parts.whole()),
      validation_(run_.context, run_.data, run_.graph, run_.parts, run_.learning_rate, engine_.pool, options.lowered),
      observers_(run_.context, options.profile) {
  require_memory(run_, engine_, balancing_);
  compare_ranks();
  begin_with_model();
  place_model();
  engine_.make_loader(progress_.step);
  assign_micro_batches(progress_.step);
  start_observers();
}

void Training::compare_ranks() {
  const auto algorithms = algorithms_of_all_parts(run_.parts, *engine_.executor, run_.communicator);
  progress_ = begin_progress(run_.context, run_.data, algorithms);
  const bool is_divided = run_.job.parallel.sharding != Sharding::none && run_.communicator.size() > 1;
  if (run_.parts.is_cut() || is_divided) return;  // no rank has room for the whole model
  reached_.first_micro_batch_seconds =
      compare_first_micro_batch(run_.context, run_.data, run_.graph, engine_.how_to_execute(algorithms), progress_);
}

// The model of a checkpoint or of `initialize`, or the initial values.
void Training::begin_with_model() {
  const JobFile& job = run_.job;
  engine_.make_model();
  if (job.parallel.sharding != Sharding::none) {
    checkpoint::note_slices(whole_model_, engine_.slices.get(), run_.parts.parts(), run_.parts.ranks(),
                            run_.communicator, run_.context.timeout());
  }
  const auto& states = engine_.updater->optimizer_states();
  checkpointing_ = std::make_unique<Checkpointing>(run_.context, checkpoint::real_files(), stop_poll());
  const auto same_run = [&](const checkpoint::Checkpoint& checkpoint) {
    require_same_run(run_.context, run_.steps, run_.steps_per_epoch, checkpoint);
  };
  reached_.resumed = checkpointing_->resume(states, engine_.model, progress_, same_run);
  if (!reached_.resumed && job.initialize) {
    const auto read = [&](comm::WorkProgress& progress) {
      reached_.initialized =
          checkpoint::initialize_from_file(*job.initialize, job.place_of("job.initialize.only"), run_.graph,
                                           whole_model_, engine_.model, [&] { progress.advance_or_stop(); });
      return false;
    };
    (void)comm::work_together(run_.communicator, {"initialize", 0, run_.context.timeout()}, read,
                              {.stalled = comm::kStartDeadline, .stop = stop_poll()});
    if (reached_.initialized) {
      const auto warning = require_same_reading(job, *reached_.initialized, run_.data);
      if (!warning.empty()) run_.context.warn(warning);
    }
  }
  if (reached_.resumed || reached_.initialized) {
    const auto where = not_finite_on_any_rank(engine_.model, run_.communicator, run_.context.timeout());
    if (!where.empty()) {
      throw Error(ExitCode::data, fmt::format("{}: expected finite numbers; the model's {}: take another",
                                              reached_.resumed ? job.run_directory : job.initialize->from, where));
    }
  }
  if (engine_.updater->has_average()) optim::average_frozen(engine_.executor->graph(), engine_.model);
  progress_.metadata["flattened"] = flattened_text(run_.graph);
  reached_.first_step = progress_.step;
  const auto& every = job.checkpoint.keep_every;
  const std::int64_t keep_every = every ? std::max<std::int64_t>(1, every->steps(run_.steps_per_epoch)) : 0;
  checkpointing_->prepare(checkpoint::sources_of(whole_model_, engine_.model, states), keep_every);
}

void Training::place_model() {
  order_gradients();
  engine_.place_model(reduced_, validation_.wanted());
  validation_.fill_inputs(engine_.placed_data.validation);
  balancing_.limit(engine_.placed_data.max_micro_batches);
  const bool recorded = reached_.resumed && run_.context.leads();
  balancing_.start(*engine_.executor, engine_.buckets, workload_of(run_.graph),
                   recorded ? read_balance_record(run_.job.run_directory) : balance::Record{}, progress_.step);
}

void Training::start_observers() {
  const auto& checkpoints = run_.job.checkpoint;
  observers_.start({.graph = run_.parts.graph(),
                    .restarts = run_.options.restarts,
                    .exactness = progress_.exactness,
                    .first_step = reached_.first_step,
                    .steps = run_.steps,
                    .steps_per_epoch = run_.steps_per_epoch,
                    .checkpoint_every = checkpoints.never ? 0 : checkpoints.every.steps(run_.steps_per_epoch),
                    .workers = engine_.pool.size(),
                    .part = run_.parts.own()},
                   *engine_.loader, run_.data, run_.graph);
}

}  // namespace lockstep::train
