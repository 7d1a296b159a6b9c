#include "step/balance/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace lockstep::balance {

namespace {

/// Parts in a row, each on its own ranks, which take its micro-batches in turn.
PipelineSetup row(const std::vector<int>& ranks_of_part, int micro_batches, int in_flight) {
  PipelineSetup setup{.parts = {}, .rank_of_micro_batch = {}, .speeds = {}, .in_flight = in_flight};
  int first = 0;
  for (std::size_t p = 0; p < ranks_of_part.size(); ++p) {
    const std::vector<int> reads = p == 0 ? std::vector<int>() : std::vector<int>{static_cast<int>(p) - 1};
    setup.parts.push_back({.forward = 1, .backward = 2, .reads = reads});
    auto& ranks = setup.rank_of_micro_batch.emplace_back();
    for (int v = 0; v < micro_batches; ++v) ranks.push_back(first + v % ranks_of_part[p]);
    first += ranks_of_part[p];
  }
  setup.speeds.assign(static_cast<std::size_t>(first), 1.0);
  return setup;
}

std::string text(const std::vector<Task>& tasks) {
  std::string text;
  for (const Task& task : tasks) text += (task.forward ? "F" : "B") + std::to_string(task.micro_batch) + " ";
  return text;
}

/// Executes the tasks, each rank in its order and as soon as their inputs are available. Returns the largest number of
/// micro-batches that any rank has between forward and backward of a part, or -1 if the ranks deadlock.
int carry_out(const PipelineSetup& setup, const Pipeline& pipeline) {
  const std::size_t ranks = setup.speeds.size();
  std::vector<std::size_t> at(ranks);
  std::map<std::pair<int, int>, bool> forward, backward;  // by part and micro-batch
  std::map<std::pair<std::size_t, int>, int> between;     // by rank and part
  int most = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (at[r] == pipeline.tasks[r].size()) continue;
      const auto& [part, micro_batch, is_forward] = pipeline.tasks[r][at[r]];
      bool ready = is_forward || forward[std::pair(part, micro_batch)];
      for (std::size_t p = 0; p < setup.parts.size(); ++p) {
        const auto& reads = setup.parts[p].reads;
        const bool reads_it = std::find(reads.begin(), reads.end(), part) != reads.end();
        const auto& own = setup.parts[static_cast<std::size_t>(part)].reads;
        const bool is_read = std::find(own.begin(), own.end(), static_cast<int>(p)) != own.end();
        if (is_forward && is_read) ready = ready && forward[std::pair(static_cast<int>(p), micro_batch)];
        if (!is_forward && reads_it) ready = ready && backward[std::pair(static_cast<int>(p), micro_batch)];
      }
      if (!ready) continue;
      EXPECT_EQ(setup.rank_of_micro_batch[static_cast<std::size_t>(part)][static_cast<std::size_t>(micro_batch)],
                static_cast<int>(r));
      bool& done = (is_forward ? forward : backward)[std::pair(part, micro_batch)];
      EXPECT_FALSE(done) << "twice";
      done = true;
      most = std::max(most, between[std::pair(r, part)] += is_forward ? 1 : -1);
      ++at[r];
      moved = true;
    }
  }
  const std::size_t micro_batches = setup.rank_of_micro_batch.front().size();
  const auto all = std::count_if(backward.begin(), backward.end(), [](const auto& entry) { return entry.second; });
  return static_cast<std::size_t>(all) == micro_batches * setup.parts.size() ? most : -1;
}

}  // namespace

TEST(Pipeline, EqualPartsInARowComeToOneForwardOneBackward) {
  const PipelineSetup setup = row({1, 1}, 4, 2);
  const Pipeline pipeline = schedule(setup);
  EXPECT_EQ(text(pipeline.tasks[0]), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(text(pipeline.tasks[1]), "F0 B0 F1 B1 F2 B2 F3 B3 ");
  EXPECT_DOUBLE_EQ(pipeline.busy[0], 4 * 3.0);
}

// m micro-batches on s equal stages take m + s - 1 times as long as one, and no stage holds more than s micro-batches.
TEST(Pipeline, TheBubbleIsThatOfStagesMinusOneMicroBatches) {
  for (const int stages : {1, 2, 4, 8}) {
    for (const int micro_batches : {1, 8, 32}) {
      const PipelineSetup setup = row(std::vector<int>(static_cast<std::size_t>(stages), 1), micro_batches, stages);
      const Pipeline pipeline = schedule(setup);
      EXPECT_DOUBLE_EQ(pipeline.seconds, 3.0 * (micro_batches + stages - 1))
          << stages << " stages, " << micro_batches << " micro-batches";
      EXPECT_EQ(carry_out(setup, pipeline), std::min(stages, micro_batches));
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
  PipelineSetup setup{
      .parts = {{.forward = 1, .backward = 2, .reads = {}},
                {.forward = 1, .backward = 2, .reads = {}},
                {.forward = 0.01, .backward = 0.02, .reads = {0, 1}}},
      .rank_of_micro_batch = {{0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0}},
      .speeds = {1, 1},
      .in_flight = 2};
  const Pipeline pipeline = schedule(setup);
  EXPECT_EQ(carry_out(setup, pipeline), 2);
  EXPECT_LT(pipeline.seconds, 1.1 * 8 * 3);
}

// A part's ranks may have the first and the last micro-batches: they compute at the same time, and so do those of the
// neighbouring part.
TEST(Pipeline, RanksOfAPartTakeTurns) {
  EXPECT_EQ(order_of_micro_batches({{0, 0, 0, 0}, {1, 1, 1, 1}}), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(order_of_micro_batches({{0, 0, 0, 0, 1, 1, 1, 1}}), (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(order_of_micro_batches({{0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 2, 2}}), (std::vector<int>{0, 4, 1, 2, 5, 3}));
  for (const std::vector<int>& ranks_of_part : std::vector<std::vector<int>>{{1, 2}, {2, 1}, {2, 2}}) {
    PipelineSetup setup = row(ranks_of_part, 16, 4);
    for (std::size_t p = 0, first = 0; p < ranks_of_part.size();
         first += static_cast<std::size_t>(ranks_of_part[p++])) {
      const int ranks = ranks_of_part[p];
      setup.parts[p].forward *= ranks, setup.parts[p].backward *= ranks;
      for (int v = 0; v < 16; ++v)
        setup.rank_of_micro_batch[p][static_cast<std::size_t>(v)] = static_cast<int>(first) + v * ranks / 16;
    }
    const Pipeline pipeline = schedule(setup);
    EXPECT_GE(carry_out(setup, pipeline), 1);
    EXPECT_LT(pipeline.seconds, 1.2 * 16 * 3) << ranks_of_part[0] << " and " << ranks_of_part[1];
  }
}

// Two ranks compute towers that meet at the end: the second part joins both.
PipelineSetup towers(bool overlap) {
  PipelineSetup setup{.parts = {{.forward = 10, .backward = 20, .reads = {}},
                                {.forward = 11, .backward = 22, .reads = {0}, .receive = 0.1}},
                      .rank_of_micro_batch = {std::vector<int>(8, 0), std::vector<int>(8, 1)},
                      .speeds = {1, 1},
                      .in_flight = 3};
  if (overlap) setup.parts[1].overlaps = {{.left = 0, .before = 10, .gradient_left = 20, .before_gradient = 0}};
  return setup;
}

TEST(Pipeline, BranchesThatMeetStartTogether) {
  const PipelineSetup apart = towers(false), together = towers(true);
  EXPECT_GE(schedule(apart).seconds, 8 * 33.0 + 10) << "the second waits for the first one's first forward";
  const Pipeline pipeline = schedule(together);
  EXPECT_GE(carry_out(together, pipeline), 1);
  EXPECT_LT(pipeline.seconds, 8 * 33.0 + 0.5) << "the second is busy from the first moment to the last";
  EXPECT_DOUBLE_EQ(pipeline.busy[1], 8 * 33.0);
}

TEST(Pipeline, WhatIsMadeEarlyIsReadEarly) {
  PipelineSetup setup = row({1, 1}, 1, 1);
  setup.parts[0].forward = 10;
  setup.parts[1].overlaps = {{.left = 8, .before = 0.5, .gradient_left = 1.5, .before_gradient = 0}};
  // The activation is ready at 2, so the second part begins at 1.5; its gradient is available 0.5 after its backward
  // has begun at 2.5, and the first part has to finish its forward.
  EXPECT_DOUBLE_EQ(schedule(setup).seconds, 10 + 2);
  setup.parts[0].forward = 1, setup.parts[1].overlaps[0].left = 0;
  EXPECT_DOUBLE_EQ(schedule(setup).seconds, 0.5 + 1 + 0.5 + 2);
}

TEST(Pipeline, NobodyWaitsForSomebodyWhoWaitsForIt) {
  std::mt19937 random(3);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  for (int trial = 0; trial < 300; ++trial) {
    PipelineSetup setup;
    const int parts = 1 + below(6), ranks = 1 + below(5), micro_batches = 1 + below(12);
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
      auto& table = setup.rank_of_micro_batch.emplace_back();
      for (int v = 0; v < micro_batches; ++v) table.push_back(below(static_cast<unsigned>(ranks)));
    }
    for (int r = 0; r < ranks; ++r) setup.speeds.push_back(0.5 + below(3));
    setup.in_flight = below(4);
    const int most = carry_out(setup, schedule(setup));
    EXPECT_GE(most, 1) << "trial " << trial;
    EXPECT_LE(most, setup.in_flight > 0 ? setup.in_flight : micro_batches) << "trial " << trial;
  }
}

}  // namespace lockstep::balance
