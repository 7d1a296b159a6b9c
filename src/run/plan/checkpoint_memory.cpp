#include "run/plan/checkpoint_memory.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "run/checkpoint/layout.hpp"
#include "step/optim/model_slices.hpp"

namespace lockstep::plan {

namespace {

/// By name, of parameters that several ranks have and divide: who keeps which elements of an optimizer's state. If
/// several parts share a weight, the first part saves its states.
std::map<std::string, std::vector<checkpoint::Holding>> divided_states(const PlacedModel& placed,
                                                                       const MemorySetup& setup) {
  std::map<std::string, std::vector<checkpoint::Holding>> holdings;
  if (placed.choice.sharding() == Sharding::none || setup.model.job.exact == Exactness::never) return holdings;
  for (const PlacedPart& part : placed.parts) {
    if (part.ranks.size() == 1) continue;
    const Graph& graph = part.graph();
    const auto owned = optim::ModelSlices::owned_by(part.ranks.size(), graph, part.program(), *part.layout.buckets);
    for (std::size_t p = 0; p < owned.size(); ++p) {
      auto& list = holdings[graph.at(graph.parameters[p]).name];
      if (!list.empty()) continue;
      for (const auto& [extent, owner] : owned[p]) {
        list.push_back({extent, {part.ranks[owner]}});
      }
    }
  }
  return holdings;
}

// Tensors by name, with the ranks that have them, which determine a checkpoint's files.
std::vector<checkpoint::TensorSource> tensors_of(const PlacedModel& placed, const MemorySetup& setup) {
  const Graph& whole = setup.model.graph;
  const auto states = divided_states(placed, setup);
  std::vector<checkpoint::TensorSource> tensors;
  const auto ranks_of = [&](const std::string& name) {
    std::vector<int> ranks;
    for (const PlacedPart& part : placed.parts) {
      const Graph& graph = part.graph();
      const bool has = std::any_of(graph.values.begin(), graph.values.end(), [&](const Value& value) {
        return value.role != Role::activation && value.name == name;
      });
      if (has) ranks.insert(ranks.end(), part.ranks.begin(), part.ranks.end());
    }
    return ranks;
  };
  const auto add = [&](const std::vector<ValueId>& ids, const optim::StateSpec* state) {
    for (const ValueId id : ids) {
      const Value& value = whole.at(id);
      const Shape shape = state != nullptr ? state->shape(value.spec.shape) : value.spec.shape;
      if (state != nullptr && state->is_missing(shape)) continue;
      checkpoint::TensorSource tensor{
          state != nullptr ? value.name + ":" + state->name : value.name, shape, {}, state != nullptr};
      const auto found = states.find(value.name);
      if (state != nullptr && shape == value.spec.shape && found != states.end()) {
        tensor.holdings = found->second;
      } else if (placed.is_cut()) {
        tensor.holdings = {{{0, elements(shape)}, ranks_of(value.name)}};
      }
      tensors.push_back(std::move(tensor));
    }
  };
  add(whole.parameters, nullptr);
  add(whole.states, nullptr);
  for (const optim::StateSpec& state : setup.states) add(whole.parameters, &state);
  return tensors;
}

}  // namespace

void add_checkpoint_memory(const PlacedModel& placed, const MemorySetup& setup, std::vector<RankMemory>& ranks) {
  const JobFile& job = setup.model.job;
  if (job.checkpoint.never) return;
  std::vector<std::string> hosts;
  for (const int host : placed.host_of) hosts.push_back(std::to_string(host));
  for (const auto& file :
       checkpoint::plan_parts(tensors_of(placed, setup), job.checkpoint.part_bytes, comm::make_topology(hosts))) {
    ranks[file.rank].checkpoint += static_cast<std::int64_t>(file.bytes);
  }
}

}  // namespace lockstep::plan
