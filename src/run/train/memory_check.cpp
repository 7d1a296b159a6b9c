#include "run/train/memory_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "comm/transport/point_to_point.hpp"
#include "run/plan/limits.hpp"
#include "run/plan/placed_model.hpp"
#include "step/exec/micro_batch_runner.hpp"

namespace lockstep::train {

namespace {

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
    for (const optim::StateSpec& state : states) {
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

}  // namespace

void require_memory(const Run& run, const Engine& engine, const Balancing& balancing) {
  if (!run.context.device.uses_host_memory()) return;  // a GPU's memory is checked when the model is placed there
  const Found found = of_all_ranks(run, engine, balancing);
  const int rank = plan::first_without_room(found.rooms);
  if (rank < 0) return;
  throw Error(ExitCode::configuration, made_by_rank_0(run, [&] { return refusal_of(run, balancing, found, rank); }));
}

}  // namespace lockstep::train
