#include "graph/memory_plan.hpp"

#include <gtest/gtest.h>

#include "lockstep/random.hpp"

namespace lockstep {

bool overlap(const Lifetime& a, const Lifetime& b) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  const bool in_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  return in_time && in_space;
}

TEST(MemoryPlan, ReusesMemoryOfTheDead) {
  std::vector<Lifetime> tensors = {{640, 0, 1}, {640, 2, 3}, {640, 4, 5}};
  EXPECT_EQ(plan_memory(tensors), 768);
}

TEST(MemoryPlan, AddsUpTheLiving) {
  std::vector<Lifetime> tensors = {{100, 0, 3}, {100, 1, 3}};
  EXPECT_EQ(plan_memory(tensors), 512);  // each rounded up to the alignment that libraries want
}

TEST(MemoryPlan, RandomLifetimesNeverOverlap) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(seed, 0);
    std::vector<Lifetime> tensors;
    for (int i = 0; i < 60; ++i) {
      const auto first = static_cast<std::int32_t>(random.below(40));
      tensors.push_back(
          {static_cast<std::int64_t>(random.below(5000)), first, first + static_cast<std::int32_t>(random.below(8))});
    }
    const std::int64_t arena = plan_memory(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(tensors[i].offset % 256, 0);
      EXPECT_LE(tensors[i].offset + tensors[i].bytes, arena);
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(tensors[i], tensors[j])) << seed;
    }
  }
}

}  // namespace lockstep
