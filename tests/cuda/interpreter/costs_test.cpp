// What is counted of launches for estimates of their cost, on small kernels.
#include "cuda/interpreter/costs.hpp"

#include <fmt/format.h>

#include "cuda/interpreter/planted.hpp"

namespace lockstep::ptx {

namespace {

class LaunchCosts : public Planted {
 protected:
  static constexpr const char* kOfBlock = "mul.wide.u32 %rd4, %r2, 128;\nadd.s64 %rd3, %rd3, %rd4;\n";

  void SetUp() override {
    Planted::SetUp();
    machine().costs = std::make_unique<Costs>(4, std::vector<std::string>{});
  }
  void TearDown() override {
    machine().costs.reset();
    EXPECT_EQ(found(), Texts{});
    Planted::TearDown();
  }
  /// Of a launch with `blocks` of 32 threads.
  LaunchCost cost(const std::string& body, unsigned blocks = 1) {
    kernel(body);
    EXPECT_EQ(run(block_.get(), 0, blocks), cudaSuccess);
    return machine().costs->last();
  }

 private:
  const Block block_{1 << 16};
};

}  // namespace

TEST_F(LaunchCosts, NeighboursReadWholeSectors) {
  const LaunchCost found = cost(kLoad);
  EXPECT_EQ(found.requests, 1);
  EXPECT_EQ(found.sectors, 4);
  EXPECT_EQ(found.needed, 4);
  EXPECT_EQ(found.moved, 128);
  EXPECT_EQ(found.least, 128);
}

TEST_F(LaunchCosts, AStrideTakesASectorForEachLane) {
  const LaunchCost found = cost("mul.wide.u32 %rd4, %r1, 32;\nadd.s64 %rd4, %rd1, %rd4;\nld.global.u32 %r3, [%rd4];\n");
  EXPECT_EQ(found.sectors, 32);
  EXPECT_EQ(found.needed, 4);
  EXPECT_EQ(found.moved, 32 * 32);
  EXPECT_EQ(found.least, 128);
}

TEST_F(LaunchCosts, BanksOfSharedMemoryGiveOneWordAtATime) {
  const auto stores = [&](const std::string& name, int stride) {
    machine().costs = std::make_unique<Costs>(4, std::vector<std::string>{});  // it has counted no such launch before
    return cost(".shared .align 16 .b8 tile[4096];\nmul.lo.s32 %r7, %r1, " + std::to_string(stride) + ";\n" + name +
                "\n");
  };
  const std::string word = "st.shared.u32 [%r7], %r1;", four = "st.shared.v4.u32 [%r7], {%r1, %r1, %r1, %r1};";
  EXPECT_EQ(stores(word, 4).ways, 1);
  EXPECT_EQ(stores(word, 4).banked, 1);
  EXPECT_EQ(stores(word, 0).ways, 1) << "all of them have it";
  EXPECT_EQ(stores(word, 8).ways, 2);
  EXPECT_EQ(stores(word, 128).ways, 32);
  EXPECT_EQ(stores(four, 16).ways, 4) << "a quarter of the warp at once";
  EXPECT_EQ(stores(four, 16).banked, 4);
  EXPECT_EQ(stores(four, 32).ways, 8);
  EXPECT_EQ(stores(word, 4).requests, 0) << "of memory";
}

TEST_F(LaunchCosts, AVectorIsOneRequest) {
  const LaunchCost found =
      cost("mul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd4, %rd1, %rd4;\nld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd4];\n");
  EXPECT_EQ(found.requests, 1);
  EXPECT_EQ(found.sectors, 16);
  EXPECT_EQ(found.needed, 16);
}

TEST_F(LaunchCosts, SomeBlocksStandForAll) {
  const LaunchCost found = cost(std::string(kOfBlock) + kLoad + kStore, 100);
  EXPECT_EQ(found.ran, 4U);
  EXPECT_EQ(found.requests, 200);
  EXPECT_EQ(found.least, 100 * 2 * 128);
  EXPECT_EQ(found.moved, 100 * 2 * 128) << "read once and written once";
}

TEST_F(LaunchCosts, WhatAllBlocksReadIsMovedOnce) {
  const LaunchCost found = cost(kLoad, 100);
  EXPECT_EQ(found.requests, 100);
  EXPECT_EQ(found.least, 128);
  EXPECT_EQ(found.moved, 128);
}

TEST_F(LaunchCosts, WhatAWarpHasJustReadIsNotMovedAgain) {
  EXPECT_EQ(cost(std::string(kLoad) + kLoad).moved, 128);
}

TEST_F(LaunchCosts, WhatAWarpMovesAgainIsSaidApart) {
  std::string loads = "mul.wide.u32 %rd4, %r1, 32;\nadd.s64 %rd4, %rd1, %rd4;\n";
  for (const int first : {0, 1024, 2048, 3072, 4096, 0}) loads += fmt::format("ld.global.u32 %r3, [%rd4+{}];\n", first);
  const LaunchCost found = cost(loads);
  EXPECT_EQ(found.moved, 6 * 1024);
  EXPECT_EQ(found.again, 1024);
  EXPECT_EQ(found.distance, 5 * 1024U) << "up to the same sector, which is moved";
}

TEST_F(LaunchCosts, LoadsThatDoNotNeedOneAnotherAreOneWait) {
  EXPECT_EQ(cost("ld.global.u32 %r3, [%rd3];\nadd.s32 %r5, %r3, 1;\nld.global.u32 %r4, [%rd3+128];\n").waits, 1U);
}

TEST_F(LaunchCosts, ALoadedAddressIsWaitedFor) {
  EXPECT_EQ(cost("ld.global.u32 %r3, [%rd3];\nmul.wide.u32 %rd4, %r3, 4;\nadd.s64 %rd4, %rd1, %rd4;\n"
                 "and.b64 %rd4, %rd4, -4096;\nmax.u64 %rd4, %rd4, %rd1;\nmin.u64 %rd4, %rd4, %rd1;\n"
                 "ld.global.u32 %r4, [%rd4];\n")
                .waits,
            2U);
}

TEST_F(LaunchCosts, NoLoadPassesAStore) {
  EXPECT_EQ(cost(std::string(kLoad) + kStore + kLoad).waits, 2U);
}

TEST_F(LaunchCosts, AnEqualLaunchIsCountedOnce) {
  (void)cost(kLoad);
  (void)cost(kLoad);
  ASSERT_EQ(machine().costs->lines().size(), 2U);
  EXPECT_EQ(machine().costs->lines()[0], machine().costs->lines()[1]);
}

}  // namespace lockstep::ptx
