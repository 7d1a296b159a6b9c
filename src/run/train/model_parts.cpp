#include "run/train/model_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "config/config.hpp"
#include "lockstep/error.hpp"
#include "run/plan/placement.hpp"
#include "step/balance/gather_waves.hpp"
#include "step/exec/part_links.hpp"

namespace lockstep::train {

namespace {

int part_of_rank(const std::vector<std::vector<int>>& ranks, int rank) {
  for (std::size_t p = 0; p < ranks.size(); ++p) {
    if (std::find(ranks[p].begin(), ranks[p].end(), rank) != ranks[p].end()) return p;
  }
  return 0;
}

std::vector<std::vector<int>> one_part(int ranks) {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

/// Whether part `b` receives something from part `a`.
bool receives(const std::vector<GraphPart>& parts, int b, int a) {
  const GraphPart& part = parts[b];
  const auto is_from = [a](const auto& source) { return source.part == a; };
  return std::any_of(part.received_from.begin(), part.received_from.end(), is_from) ||
         std::any_of(part.arrives_from.begin(), part.arrives_from.end(), is_from);
}

/// The ranks that exchange messages with part `own`.
std::vector<int> peers_of(const std::vector<GraphPart>& parts, const std::vector<std::vector<int>>& ranks, int own) {
  std::vector<int> peers;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const int part = p;
    if (receives(parts, part, own) || receives(parts, own, part)) {
      peers.insert(peers.end(), ranks[p].begin(), ranks[p].end());
    }
  }
  return peers;
}

}  // namespace

ModelParts::ModelParts(const Graph& graph, const JobFile& job, const exec::Device& device, Communicator& ranks,
                       bool lowered, std::vector<double> speeds)
    : whole_(graph),
      communicator_(ranks),
      speeds_(plan::in_proportion(std::move(speeds))),
      ranks_(one_part(ranks.size())) {
  if (ranks.size() == 1 || config::max_parts(job) == 1) return;
  // The whole model is lowered: what a pass does to a layer must not depend on where the model is cut.
  const Graph as_computed = device.lower(graph, lowered);
  const Placement placement = plan::place_by_speed(as_computed, job.parallel, speeds_, job.micro_batches);
  if (placement.ranks_of_part.size() == 1) return;
  ranks_ = placement.ranks_of_part;
  parts_ = split(as_computed, placement.part_of_node);
  costs_ = plan::counted_costs(parts_);
  own_ = part_of_rank(ranks_, ranks.rank());
  of_loss_ = placement.part_of_node[as_computed.loss];
  group_ = std::make_unique<comm::GroupCommunicator>(ranks, ranks_[own_]);
  pulse_ = std::make_unique<comm::Pulse>(ranks, peers_of(parts_, ranks_, own_), job.timeout());
  of_model_.emplace(exec::PartOfModel{.part = part(own_),
                                      .links = exec::links_of(parts_, own_),
                                      .ranks = ranks,
                                      .samples = job.batch_size / job.micro_batches,
                                      .in_flight = job.parallel.in_flight > 0 ? static_cast<int>(job.parallel.in_flight)
                                                                              : exec::default_in_flight(ranks_),
                                      .timeout = job.timeout(),
                                      .pulse = pulse_.get()});
}

std::vector<events::Part> ModelParts::events() const {
  std::vector<events::Part> events;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const Graph& graph = parts_[p].graph;
    std::int64_t elements = 0;
    for (const ValueId id : graph.parameters) elements += graph.at(id).spec.elements();
    events.push_back({.part = static_cast<std::int64_t>(p),
                      .parts = count(),
                      .ranks = fmt::format("{}", fmt::join(ranks_[p], " ")),
                      .first = graph.nodes.front().name,
                      .last = graph.nodes.back().name,
                      .parameters = elements});
  }
  return events;
}

exec::PartSchedule ModelParts::schedule(std::span<const comm::MicroBatchAssignment> assignments,
                                        std::span<const int> workers, bool training) const {
  std::vector<int> first_worker(workers.size() + 1);  // by rank: the global number of its first worker
  std::partial_sum(workers.begin(), workers.end(), first_worker.begin() + 1);
  balance::PipelineSetup setup;
  for (std::size_t r = 0; r < workers.size(); ++r) {
    setup.speeds.insert(setup.speeds.end(), workers[r], speeds_[r] / workers[r]);
  }
  setup.in_flight = of_model_->in_flight;
  setup.parts = costs_;
  exec::PartSchedule schedule;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    std::size_t micro_batches = 0;
    for (const auto& list : assignments[p].micro_batches_of_rank) micro_batches += list.size();
    auto& worker_of = setup.rank_of_micro_batch.emplace_back(micro_batches);
    auto& rank_of = schedule.rank_of_micro_batch.emplace_back(micro_batches);
    for (std::size_t r = 0; r < ranks_[p].size(); ++r) {
      std::vector<int> list = assignments[p].micro_batches_of_rank[r];
      std::sort(list.begin(), list.end());
      const int rank = ranks_[p][r];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::size_t micro_batch = list[i];
        rank_of[micro_batch] = rank;
        worker_of[micro_batch] = first_worker[rank] + static_cast<int>(i) % workers[rank];
      }
    }
  }
  const std::vector<balance::Task> order =
      training ? balance::schedule(setup).order : balance::order_of_evaluation(setup);
  schedule.numbers = numbers(setup, schedule.rank_of_micro_batch, order);
  const std::vector<int> waves = balance::waves_of(setup, order);
  const std::size_t rank = communicator_.rank();
  schedule.tasks.resize(workers[rank]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& [part, micro_batch, forward] = order[i];
    if (part != own_) continue;
    if (!forward) schedule.backwards.push_back(micro_batch);
    const std::size_t wave = waves[i];
    schedule.waves.resize(std::max(schedule.waves.size(), wave + 1));
    schedule.waves[wave].forward = forward;
    if (schedule.rank_of_micro_batch[part][micro_batch] != communicator_.rank()) {
      continue;
    }
    ++schedule.waves[wave].readers;
    const int worker = setup.rank_of_micro_batch[part][micro_batch];
    schedule.tasks[worker - first_worker[rank]].push_back(
        {micro_batch, forward ? exec::Pass::forward : exec::Pass::backward, waves[i]});
  }
  std::vector<int> backwards_before;  // by wave
  for (const auto& wave : schedule.waves) {
    const int before = backwards_before.empty() ? 0 : backwards_before.back();
    backwards_before.push_back(before + (wave.forward ? 0 : 1));
  }
  schedule.waves_of_gradients.resize(schedule.backwards.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].part != own_ || order[i].forward) continue;
    schedule.waves_of_gradients[order[i].micro_batch] = backwards_before[waves[i]] - 1;
  }
  return schedule;
}

// A worker receives in the order of its forwards: values, and after each forward, it posts the receives of gradients.
exec::MessageNumbers ModelParts::numbers(const balance::PipelineSetup& setup,
                                         const exec::RankOfMicroBatch& rank_of_micro_batch,
                                         std::span<const balance::Task> order) const {
  std::vector<std::vector<std::size_t>> forward, backward;  // positions by part and micro-batch
  for (const auto& micro_batches : rank_of_micro_batch) {
    forward.emplace_back(micro_batches.size());
    backward.emplace_back(micro_batches.size());
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t part = order[i].part;
    (order[i].forward ? forward : backward)[part][order[i].micro_batch] = i;
  }
  const auto between = [&](std::size_t from, std::size_t to) {
    std::vector<int> none;
    if (!receives(parts_, to, from)) return none;
    std::vector<exec::PartMessage> messages;
    for (std::size_t m = 0; m < forward[from].size(); ++m) {
      messages.push_back({.from = rank_of_micro_batch[from][m],
                          .to = rank_of_micro_batch[to][m],
                          .sender = setup.rank_of_micro_batch[from][m],
                          .receiver = setup.rank_of_micro_batch[to][m],
                          .sent = (from < to ? forward : backward)[from][m],
                          .received = forward[to][m]});
    }
    return exec::message_numbers(messages);
  };
  exec::MessageNumbers numbers;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    numbers.to.push_back(between(static_cast<std::size_t>(own_), p));
    numbers.from.push_back(between(p, static_cast<std::size_t>(own_)));
  }
  return numbers;
}

}  // namespace lockstep::train
