// Where gathered parameters lie in slots, and the order of gathers and buckets.
#include "step/exec/gather_layout.hpp"

#include <gtest/gtest.h>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "graph/precision.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"

namespace lockstep::exec {
namespace {

using Int = std::int64_t;
using Slice = std::tuple<int, std::size_t, std::size_t>;

/// Three linear layers of 8 features, without biases: weights of 64 floats, 256 bytes.
Graph linear_chain() {
  static const OpRegistry registry = [] {
    OpRegistry built_in;
    ops::add_built_in(built_in);
    return built_in;
  }();
  GraphBuilder b(registry, 4);
  ValueId x = b.input("x", {DType::f32, {8}});
  for (int layer = 0; layer < 3; ++layer) {
    x = b.apply("linear", {x}, Attributes({{"features", Int{8}}, {"bias", false}}));
  }
  b.graph().output = x;
  return std::move(b.graph());
}

std::vector<Slice> slices_in(const GatherLayout::Unit& unit) {
  std::vector<Slice> slices;
  for (const auto& [owner, offset, bytes] : unit.slices) slices.emplace_back(owner, offset, bytes);
  return slices;
}

TEST(GatherLayout, NeighboursOfOneOwnerAreOneSlice) {
  const std::vector<std::vector<OwnedExtent>> owned = {{{{0, 32}, 0}, {{32, 64}, 1}}, {{{0, 64}, 1}}, {{{0, 64}, 0}}};
  const GatherLayout layout(linear_chain(), {0, 0, 1}, owned);
  ASSERT_EQ(layout.units().size(), 2U);
  EXPECT_EQ(layout.unit(0).bytes, 512U);
  EXPECT_EQ(slices_in(layout.unit(0)), (std::vector<Slice>{{0, 0, 128}, {1, 128, 384}}));
  EXPECT_EQ(slices_in(layout.unit(1)), (std::vector<Slice>{{0, 0, 256}}));
  EXPECT_EQ(layout.max_area_bytes(), 256U);
}

TEST(GatherLayout, HasTheFormThatIsRead) {
  Graph graph = linear_chain();
  set_precision(graph, DType::bf16);
  use_low_precision_weights(graph);
  const GatherLayout layout(graph, {0, 0, 0}, {{{{0, 64}, 0}}, {{{0, 64}, 0}}, {{{0, 64}, 1}}});
  ASSERT_EQ(layout.unit(0).areas.size(), 3U);
  for (const GatherLayout::Area& area : layout.unit(0).areas) EXPECT_TRUE(area.low_precision);
  EXPECT_EQ(layout.unit(0).areas[2].offset, 512U);
}

/// One instruction for each list of parameters to be read, each of which finishes a slot.
Program reading(const std::vector<std::vector<Int>>& parameters) {
  Program program;
  for (const auto& list : parameters) {
    Instruction& instruction = program.instructions.emplace_back();
    for (const Int parameter : list) instruction.parameters.push_back({Space::parameter, parameter});
    instruction.slots_done = static_cast<std::int32_t>(program.instructions.size());
  }
  return program;
}

TEST(GatherLayout, HasSlotsForWhatIsReadAndWhatIsAhead) {
  const GatherLayout layout(linear_chain(), {0, 1, 2}, {{{{0, 64}, 0}}, {{{0, 64}, 0}}, {{{0, 64}, 0}}});
  const Program program = reading({{0}, {1}, {2}, {2}, {1}, {0}});
  EXPECT_EQ(layout.slots(program), 3U);
  EXPECT_EQ(layout.bytes(program), 3 * 256U);
  EXPECT_EQ(layout.slots(reading({{0, 1}, {2}})), 4U);
}

TEST(Gathers, AreInWavesOfTheRankWithTheMost) {
  EXPECT_EQ(comm::count_waves(std::vector{6, 5, 5}, std::vector{2, 2, 2}), 3);
  EXPECT_EQ(comm::count_waves(std::vector{6, 5, 5}, std::vector{5, 5, 5}), 2);
  EXPECT_EQ(comm::count_waves(std::vector{0, 9}, std::vector{1, 4}), 3);
  std::vector<int> readers;
  for (const GatherWave& wave : waves_of_whole(7, 3, 3, 2)) {
    EXPECT_EQ(std::pair(wave.first, wave.end), std::pair(std::size_t{0}, std::size_t{7}));
    readers.push_back(wave.readers);
  }
  EXPECT_EQ(readers, (std::vector{2, 0, 1}));
}

TEST(Gathers, ThatABucketNeedsPrecedeIt) {
  const Program program = reading({{0}, {1}, {2}, {2}, {1}, {0}});  // five uses
  const std::vector<UnitUse> uses = unit_uses(program, {0, 1, 2}, false);
  comm::GradientBuckets buckets;
  buckets.buckets = {{.elements = 1, .first_slot = 0, .last_slot = 1},
                     {.elements = 1, .first_slot = 1, .last_slot = 4},
                     {.elements = 1, .first_slot = 4, .last_slot = 6}};
  const auto before = [&](int waves) {
    return gathers_before_exchanges(program, uses, buckets, waves_of_whole(5, waves, 1, 1), 3);
  };
  EXPECT_EQ(before(1), (std::vector<int>{3, 5, 5}));
  EXPECT_EQ(before(3), (std::vector<int>{13, 15, 15}));
  buckets.buckets[1].scattered = true;
  EXPECT_EQ(before(3), (std::vector<int>{5, 10, 13, 15, 15}));
  for (auto& bucket : buckets.buckets) bucket.scattered = true;
  EXPECT_EQ(before(3), (std::vector<int>{3, 5, 7, 8, 10, 12, 13, 15, 15}));
}

// A worker may wait for the exchange before it releases the unit.
TEST(Gathers, IntoASlotThatIsReadAfterABucketFollowIt) {
  const Program program = reading({{0}, {1}, {2}, {0}, {0}, {0}});
  const std::vector<UnitUse> uses = unit_uses(program, {0, 1, 2}, false);
  ASSERT_EQ(uses.back(), (UnitUse{0, 3, 5}));
  comm::GradientBuckets buckets;
  for (const int end : {4, 5, 6}) {
    buckets.buckets.push_back({.elements = 1, .first_slot = end - 1, .last_slot = end, .scattered = true});
  }
  EXPECT_EQ(gathers_before_exchanges(program, uses, buckets, waves_of_whole(4, 2, 2, 1), 3),
            (std::vector<int>{4, 4, 6, 8, 8, 8}));
}

TEST(Gathers, OfAPartAreThoseOfForwardOrOfBackward) {
  Program program = reading({{0}, {1}, {2}, {2}, {1}, {0}});
  program.forward_end = 3;
  const GatherLayout layout(linear_chain(), {0, 1, 2}, {{{{0, 64}, 0}}, {{{0, 64}, 0}}, {{{0, 64}, 0}}}, true);
  const std::vector<UnitUse> uses = layout.uses(program, layout.slots(program));
  EXPECT_EQ(uses, (std::vector<UnitUse>{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {2, 3, 3}, {1, 4, 4}, {0, 5, 5}}));
  comm::GradientBuckets buckets;  // the first one has what forward finishes, such as statistics
  buckets.buckets = {{.elements = 1, .first_slot = 0, .last_slot = 1},
                     {.elements = 1, .first_slot = 1, .last_slot = 4},
                     {.elements = 1, .first_slot = 4, .last_slot = 6}};
  const std::vector<GatherWave> waves = {{0, 3, 1, false}, {0, 3, 0, false}, {3, 6, 0, true}, {3, 6, 1, true}};
  EXPECT_EQ(gathers_before_exchanges(program, uses, buckets, waves, 3), (std::vector<int>{11, 12, 12}));
  buckets.buckets[2].scattered = true;
  EXPECT_EQ(gathers_before_exchanges(program, uses, buckets, waves, 3), (std::vector<int>{11, 11, 12, 12}));
}

}  // namespace
}  // namespace lockstep::exec
