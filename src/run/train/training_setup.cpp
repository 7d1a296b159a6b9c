// How a run begins: the comparison between ranks, the model that it starts from, and the placement of model and data.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "comm/transport/host_leader.hpp"
#include "comm/transport/point_to_point.hpp"
#include "comm/transport/work_together.hpp"
#include "graph/flattened.hpp"
#include "graph/workload.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/plan/limits.hpp"
#include "run/plan/placed_model.hpp"
#include "run/train/agreed_algorithms.hpp"
#include "run/train/balancing.hpp"
#include "run/train/engine.hpp"
#include "run/train/known_speeds.hpp"
#include "run/train/not_finite.hpp"
#include "run/train/same_run.hpp"
#include "run/train/start_check.hpp"
#include "run/train/training.hpp"
#include "step/exec/micro_batch_runner.hpp"
#include "step/optim/weight_average.hpp"

namespace lockstep::train {

namespace {

// Checks, before anything is allocated, that each rank may have the memory that it needs at least.

constexpr std::size_t kLimitWidth = 64;  // of the limit's name

/// Bytes of directions of matrices: all, or of what ranks divide only those that this rank makes steps of.
std::int64_t bytes_of_directions(const Run& run, const Graph& graph, bool divided) {
  const OptimizerDef& optimizer = run.context.registries.optimizers.at(run.job.optimizer.kind);
  const Communicator& group = run.parts.group();
  const optim::MatrixMakers makers(graph, optimizer, optim::settings_of(optimizer, run.job.optimizer), group.size());
  const optim::MatrixMakers::Owned nothing(graph.parameters.size());
  return makers.held_elements(group.rank(), divided ? &nothing : nullptr) * static_cast<std::int64_t>(sizeof(float));
}

/// A lower bound: one sum of the gradients, and whatever is indispensable. What ranks divide occupies memory only on
/// its owner, unless the limit also counts untouched memory.
std::int64_t least_of_this_rank(const Run& run, const Engine& engine, const Balancing& balancing,
                                const plan::MemoryLimit& limit) {
  const Graph& graph = engine.executor->graph();
  const auto states = optim::states_of(run.job.optimizer, run.context.registries.optimizers);
  const bool shards = run.job.parallel.sharding != Sharding::none;
  std::int64_t divided = 0, undivided = bytes_of_directions(run, graph, shards);
  for (const ValueId id : graph.parameters) {
    const Value& value = graph.at(id);
    const std::int64_t bytes = value.spec.bytes();
    divided += value.frozen ? bytes : 3 * bytes;  // the parameter, its gradient and the sum of that
    for (const optim::OptimizerState& state : states) {
      const Shape shape = state.shape(value.spec.shape);
      (shape == value.spec.shape ? divided : undivided) += elements(shape) * static_cast<std::int64_t>(sizeof(float));
    }
  }
  const bool is_divided = shards && !limit.counts_untouched;
  const std::int64_t owners = is_divided ? run.parts.group().size() : 1;
  const std::int64_t arena = exec::MicroBatchRunner::arena_bytes(engine.executor->program());
  return divided / owners + undivided +
         arena * std::min<std::int64_t>(engine.pool.size(), std::ssize(balancing.own_micro_batches()));
}

struct Found {
  std::vector<plan::RankRoom> rooms;
  std::vector<plan::MemoryLimit> limits;
};

Found of_all_ranks(const Run& run, const Engine& engine, const Balancing& balancing) {
  const plan::MemoryLimit limit = plan::limit_of_process();
  struct Mine {
    std::int64_t least = 0, limit = 0;
    bool counts_untouched = false;
    std::array<char, kLimitWidth> what{};
  } mine{least_of_this_rank(run, engine, balancing, limit), limit.bytes, limit.counts_untouched, {}};
  limit.what.copy(mine.what.data(), kLimitWidth - 1);
  std::vector<Mine> all(run.communicator.size());
  run.communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                              {"start", 0, run.context.timeout()});
  Found found;
  for (const Mine& rank : all) {
    found.rooms.push_back({rank.least, rank.limit});
    found.limits.push_back({rank.limit, rank.what.data(), rank.counts_untouched});
  }
  return found;
}

/// The text that rank 0 makes, on all ranks: it would be the same on each, and the ranks of a host share its cores.
std::string made_by_rank_0(const Run& run, const std::function<std::string()>& make) {
  const Operation operation{"start", 0, run.context.timeout()};
  std::string text;
  if (run.communicator.rank() == 0) {
    try {
      text = make();
    } catch (const Error& error) {  // the others wait for a text
      text = error.what();
    }
  }
  return comm::broadcast_text(run.communicator, std::move(text), 0, operation);
}

/// `rank` has no room.
std::string refusal_of(const Run& run, const Balancing& balancing, const Found& found, int rank) {
  const Graph graph = run.context.device.lower(run.graph, run.options.lowered);
  const plan::ModelSetup model = plan::model_setup(graph, run.job, run.context.device, false);
  const plan::MemorySetup memory = plan::memory_setup(model, run.context.registries.optimizers);
  const plan::RankSetup ranks{run.communicator.topology().host_of, balancing.workers_of_ranks(), {}};
  plan::RankSetup dealt = ranks;
  dealt.micro_batches = balancing.counts();
  const plan::PlacedModel placed = plan::place_model(model, dealt, plan::choice_of(run.job));
  const std::size_t r = rank;
  const std::vector<plan::RankMemory> needs = plan::memory_of(placed, memory);
  const plan::RankRoom room{needs[r].least(), found.rooms[r].limit};
  const plan::MemoryLimit& limit = found.limits[r];
  const bool may_divide = !limit.counts_untouched && run.job.exact != Exactness::never && ranks.count() > 1;
  return plan::refusal(fmt::format("rank {} on {}", rank, run.communicator.topology().host_name(rank)), room,
                       limit.what, placed, needs, plan::least_memory(memory, ranks, may_divide));
}

/// Collective. Throws Error(configuration) on all ranks, with a table and the placement that needs least, if a rank's
/// parameters, gradients, optimizer states and activations exceed the limit of its cgroup or process. Ranks without a
/// limit are not checked, nor is GPU memory (see Backend::place_data).
void require_memory(const Run& run, const Engine& engine, const Balancing& balancing) {
  if (!run.context.device.uses_host_memory()) return;  // a GPU's memory is checked when the model is placed there
  const Found found = of_all_ranks(run, engine, balancing);
  const int rank = plan::first_without_room(found.rooms);
  if (rank < 0) return;
  throw Error(ExitCode::configuration, made_by_rank_0(run, [&] { return refusal_of(run, balancing, found, rank); }));
}

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
