// Waves of gathers of the ranks of a part: no order of them lets ranks wait for each other in a circle.
#include "step/balance/gather_waves.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace lockstep::balance {
namespace {

struct Waves {
  std::vector<Task> order;
  std::vector<int> of_task;
};

Waves training(const PipelineSetup& setup) {
  const std::vector<Task> order = schedule(setup).order;
  return {order, waves_of(setup, order)};
}

Waves evaluation(const PipelineSetup& setup) {
  const std::vector<Task> order = order_of_evaluation(setup);
  return {order, waves_of(setup, order)};
}

int worker_of(const PipelineSetup& setup, const Task& task) {
  return setup.rank_of_micro_batch[static_cast<std::size_t>(task.part)][static_cast<std::size_t>(task.micro_batch)];
}

std::vector<int> count_by_part(const PipelineSetup& setup, const Waves& waves) {
  std::vector<int> counts(setup.parts.size());
  for (std::size_t i = 0; i < waves.order.size(); ++i) {
    int& count = counts[static_cast<std::size_t>(waves.order[i].part)];
    count = std::max(count, waves.of_task[i] + 1);
  }
  return counts;
}

bool reads(const PipelineSetup& setup, int part, int other) {
  const std::vector<int>& list = setup.parts[static_cast<std::size_t>(part)].reads;
  return std::find(list.begin(), list.end(), other) != list.end();
}

/// Whether `task` waits for the end of `other`, a task of the same micro-batch; `sends`: or for its beginning.
bool waits_for(const PipelineSetup& setup, const Task& task, const Task& other) {
  if (task.micro_batch != other.micro_batch) return false;
  if (task.part == other.part) return !task.forward && other.forward;
  if (task.forward != other.forward) return false;
  return task.forward ? reads(setup, task.part, other.part) : reads(setup, other.part, task.part);
}

/// Carries the waves out as strictly as ranks never do: a wave's tasks begin together, when all that any of them waits
/// for has ended, and so has the part's wave before. Expects that all tasks are computed.
void expect_no_standstill(const PipelineSetup& setup, const Waves& waves) {
  const std::size_t tasks = waves.order.size();
  const bool trains =
      std::any_of(waves.order.begin(), waves.order.end(), [](const Task& task) { return !task.forward; });
  std::vector<std::vector<std::size_t>> awaited(tasks);
  for (std::size_t i = 0; i < tasks; ++i) {
    for (std::size_t j = 0; j < tasks; ++j) {
      if (waits_for(setup, waves.order[i], waves.order[j])) awaited[i].push_back(j);
    }
    // A worker's tasks come one after the other. In an evaluation, what the last one has sent may have to leave.
    for (std::size_t j = 0; j < i; ++j) {
      if (worker_of(setup, waves.order[i]) != worker_of(setup, waves.order[j])) continue;
      awaited[i].push_back(j);
      for (std::size_t k = 0; k < tasks && !trains; ++k) {
        if (waits_for(setup, waves.order[k], waves.order[j])) awaited[i].push_back(k);
      }
    }
  }
  std::vector<bool> done(tasks);
  std::vector<int> next(setup.parts.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (int part = 0; part < static_cast<int>(setup.parts.size()); ++part) {
      std::vector<std::size_t> wave;
      bool ready = true;
      std::set<int> workers;
      for (std::size_t i = 0; i < tasks; ++i) {
        if (waves.order[i].part != part || waves.of_task[i] != next[static_cast<std::size_t>(part)]) continue;
        wave.push_back(i);
        EXPECT_TRUE(workers.insert(worker_of(setup, waves.order[i])).second) << "a worker has one task of a wave";
        EXPECT_EQ(waves.order[i].forward, waves.order[wave.front()].forward);
        for (const std::size_t other : awaited[i]) ready = ready && done[other];
      }
      if (wave.empty() || !ready) continue;
      for (const std::size_t i : wave) done[i] = true;
      ++next[static_cast<std::size_t>(part)];
      moved = true;
    }
  }
  EXPECT_EQ(std::count(done.begin(), done.end(), true), std::ssize(waves.order));
}

/// Two parts in a row with so many workers, which have as many micro-batches each as `micro_batches` says.
PipelineSetup two_parts(const std::vector<std::vector<int>>& micro_batches, int in_flight) {
  PipelineSetup setup{
      .parts = {{.forward = 1, .backward = 2, .reads = {}}, {.forward = 1, .backward = 2, .reads = {0}}},
      .rank_of_micro_batch = {},
      .speeds = {},
      .in_flight = in_flight};
  int worker = 0;
  for (const std::vector<int>& of_part : micro_batches) {
    auto& table = setup.rank_of_micro_batch.emplace_back();
    for (const int count : of_part) table.insert(table.end(), static_cast<std::size_t>(count), worker++);
  }
  setup.speeds.assign(static_cast<std::size_t>(worker), 1.0);
  return setup;
}

TEST(GatherWaves, AreSharedByRanksThatAreEquallyFar) {
  const PipelineSetup setup = two_parts({{4, 4}, {4, 4}}, 2);
  EXPECT_EQ(count_by_part(setup, training(setup)), (std::vector<int>{8, 8}))
      << "forward and backward of four micro-batches";
  EXPECT_EQ(count_by_part(setup, evaluation(setup)), (std::vector<int>{4, 4}));
}

// Backwards that become ready at different times share no wave, as nobody waits in order to share one.
TEST(GatherWaves, OfUnequalSharesAreAtLeastThoseOfTheLargest) {
  const PipelineSetup setup = two_parts({{6, 2}, {8}}, 3);
  EXPECT_EQ(count_by_part(setup, training(setup)), (std::vector<int>{14, 16}));
  EXPECT_EQ(count_by_part(setup, evaluation(setup)), (std::vector<int>{6, 8}));
}

TEST(GatherWaves, EndWithABackward) {
  const PipelineSetup setup = two_parts({{5, 3}, {2, 2, 4}}, 2);
  const Waves waves = training(setup);
  const std::vector<int> counts = count_by_part(setup, waves);
  for (std::size_t i = 0; i < waves.order.size(); ++i) {
    if (waves.of_task[i] + 1 == counts[static_cast<std::size_t>(waves.order[i].part)]) {
      EXPECT_FALSE(waves.order[i].forward) << "the gradient's buckets lie among the gathers of a part's last wave";
    }
  }
}

TEST(GatherWaves, NobodyWaitsForSomebodyWhoWaitsForIt) {
  std::mt19937 random(5);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  for (int trial = 0; trial < 200; ++trial) {
    PipelineSetup setup;
    const int parts = 1 + below(5), micro_batches = 1 + below(10);
    int workers = 0;
    for (int p = 0; p < parts; ++p) {
      PartCost& cost = setup.parts.emplace_back();
      cost.forward = 1 + below(5), cost.backward = 1 + below(9), cost.receive = below(3);
      for (int q = 0; q < p; ++q) {
        if (below(2) == 0) cost.reads.push_back(q);
      }
      for (std::size_t i = 0; i < cost.reads.size() && trial % 2 == 1; ++i) {
        const PartCost& other = setup.parts[static_cast<std::size_t>(cost.reads[i])];
        const auto some = [&](double seconds) { return seconds * below(4) / 3.0; };
        cost.overlaps.push_back({some(other.forward), some(cost.forward), some(cost.backward), some(other.backward)});
      }
      const int own = 1 + below(4);
      auto& table = setup.rank_of_micro_batch.emplace_back();
      for (int v = 0; v < micro_batches; ++v) table.push_back(workers + below(static_cast<unsigned>(own)));
      workers += own;
    }
    for (int w = 0; w < workers; ++w) setup.speeds.push_back(0.5 + below(3));
    setup.in_flight = below(4);
    SCOPED_TRACE(trial);
    expect_no_standstill(setup, training(setup));
    expect_no_standstill(setup, evaluation(setup));
  }
}

}  // namespace
}  // namespace lockstep::balance
