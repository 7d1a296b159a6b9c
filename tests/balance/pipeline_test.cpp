#include "balance/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace lockstep::balance {

namespace {

/// Parts in a row, each on ranks of its own, which take its shards in turn.
PipelineSetup row(const std::vector<int>& ranks_of_part, int shards, int in_flight) {
  PipelineSetup setup{.parts = {}, .rank_of_shard = {}, .speeds = {}, .in_flight = in_flight};
  int first = 0;
  for (std::size_t p = 0; p < ranks_of_part.size(); ++p) {
    const std::vector<int> reads = p == 0 ? std::vector<int>() : std::vector<int>{static_cast<int>(p) - 1};
    setup.parts.push_back({.forward = 1, .backward = 2, .reads = reads});
    auto& ranks = setup.rank_of_shard.emplace_back();
    for (int v = 0; v < shards; ++v) ranks.push_back(first + v % ranks_of_part[p]);
    first += ranks_of_part[p];
  }
  setup.speeds.assign(static_cast<std::size_t>(first), 1.0);
  return setup;
}

std::string text(const std::vector<Task>& tasks) {
  std::string text;
  for (const Task& task : tasks) text += (task.forward ? "F" : "B") + std::to_string(task.shard) + " ";
  return text;
}

/// Carries the tasks out, each rank in its order and as soon as what it needs is there: the most shards that any rank
/// has between forward and backward of a part, or -1 where ranks wait for each other for good.
int carry_out(const PipelineSetup& setup, const Pipeline& pipeline) {
  const std::size_t ranks = setup.speeds.size();
  std::vector<std::size_t> at(ranks);
  std::map<std::pair<int, int>, bool> forward, backward;  // by part and shard
  std::map<std::pair<std::size_t, int>, int> between;     // by rank and part
  int most = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (at[r] == pipeline.tasks[r].size()) continue;
      const auto& [part, shard, is_forward] = pipeline.tasks[r][at[r]];
      bool ready = is_forward || forward[std::pair(part, shard)];
      for (std::size_t p = 0; p < setup.parts.size(); ++p) {
        const auto& reads = setup.parts[p].reads;
        const bool reads_it = std::find(reads.begin(), reads.end(), part) != reads.end();
        const auto& own = setup.parts[static_cast<std::size_t>(part)].reads;
        const bool is_read = std::find(own.begin(), own.end(), static_cast<int>(p)) != own.end();
        if (is_forward && is_read) ready = ready && forward[std::pair(static_cast<int>(p), shard)];
        if (!is_forward && reads_it) ready = ready && backward[std::pair(static_cast<int>(p), shard)];
      }
      if (!ready) continue;
      EXPECT_EQ(setup.rank_of_shard[static_cast<std::size_t>(part)][static_cast<std::size_t>(shard)],
                static_cast<int>(r));
      bool& done = (is_forward ? forward : backward)[std::pair(part, shard)];
      EXPECT_FALSE(done) << "twice";
      done = true;
      most = std::max(most, between[std::pair(r, part)] += is_forward ? 1 : -1);
      ++at[r];
      moved = true;
    }
  }
  const std::size_t shards = setup.rank_of_shard.front().size();
  const auto all = std::count_if(backward.begin(), backward.end(), [](const auto& entry) { return entry.second; });
  return static_cast<std::size_t>(all) == shards * setup.parts.size() ? most : -1;
}

}  // namespace

TEST(Pipeline, EqualPartsInARowComeToOneForwardOneBackward) {
  const PipelineSetup setup = row({1, 1}, 4, 2);
  const Pipeline pipeline = schedule(setup);
  EXPECT_EQ(text(pipeline.tasks[0]), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(text(pipeline.tasks[1]), "F0 B0 F1 B1 F2 B2 F3 B3 ");
  EXPECT_DOUBLE_EQ(pipeline.busy[0], 4 * 3.0);
}

// m shards on s equal stages take m + s - 1 times what one takes, and no stage holds more than s shards.
TEST(Pipeline, TheBubbleIsThatOfStagesMinusOneShards) {
  for (const int stages : {1, 2, 4, 8}) {
    for (const int shards : {1, 8, 32}) {
      const PipelineSetup setup = row(std::vector<int>(static_cast<std::size_t>(stages), 1), shards, stages);
      const Pipeline pipeline = schedule(setup);
      EXPECT_DOUBLE_EQ(pipeline.seconds, 3.0 * (shards + stages - 1)) << stages << " stages, " << shards << " shards";
      EXPECT_EQ(carry_out(setup, pipeline), std::min(stages, shards));
    }
  }
}

TEST(Pipeline, PartsMayHaveUnequalNumbersOfRanks) {
  PipelineSetup setup = row({1, 3}, 12, 0);
  setup.parts[1].forward = 3, setup.parts[1].backward = 6;
  const Pipeline pipeline = schedule(setup);
  EXPECT_GE(carry_out(setup, pipeline), 1);
  EXPECT_LT(pipeline.seconds, 1.35 * 12 * 3) << "one rank for the first part, three for one of three times the work";
}

TEST(Pipeline, BranchesRunSideBySide) {
  PipelineSetup setup{.parts = {{.forward = 1, .backward = 2, .reads = {}},
                                {.forward = 1, .backward = 2, .reads = {}},
                                {.forward = 0.01, .backward = 0.02, .reads = {0, 1}}},
                      .rank_of_shard = {{0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0}},
                      .speeds = {1, 1},
                      .in_flight = 2};
  const Pipeline pipeline = schedule(setup);
  EXPECT_EQ(carry_out(setup, pipeline), 2);
  EXPECT_LT(pipeline.seconds, 1.1 * 8 * 3);
}

TEST(Pipeline, NobodyWaitsForSomebodyWhoWaitsForIt) {
  std::mt19937 random(3);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  for (int trial = 0; trial < 300; ++trial) {
    PipelineSetup setup;
    const int parts = 1 + below(6), ranks = 1 + below(5), shards = 1 + below(12);
    for (int p = 0; p < parts; ++p) {
      PartCost& cost = setup.parts.emplace_back();
      cost.forward = 1 + below(5), cost.backward = 1 + below(9), cost.receive = below(3);
      for (int q = 0; q < p; ++q) {
        if (below(2) == 0) cost.reads.push_back(q);
      }
      auto& table = setup.rank_of_shard.emplace_back();
      for (int v = 0; v < shards; ++v) table.push_back(below(static_cast<unsigned>(ranks)));
    }
    for (int r = 0; r < ranks; ++r) setup.speeds.push_back(0.5 + below(3));
    setup.in_flight = below(4);
    const int most = carry_out(setup, schedule(setup));
    EXPECT_GE(most, 1) << "trial " << trial;
    EXPECT_LE(most, setup.in_flight > 0 ? setup.in_flight : shards) << "trial " << trial;
  }
}

}  // namespace lockstep::balance
