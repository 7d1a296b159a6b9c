// How many blocks a grid has, and which element or row a thread gets if there are more of these than 32 bits can count.
#include "device/gpu/grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "device/gpu/grid_size.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

constexpr std::int64_t kMany = (std::int64_t{1} << 33) + 5;

/// The elements that were read and written, in order.
struct Listed {
  std::vector<std::int64_t>*read, *written;
  std::int64_t value(std::int64_t i) const {
    read->push_back(i);
    return i;
  }
  void store(std::int64_t i, std::int64_t value) const {
    EXPECT_EQ(i, value);
    written->push_back(i);
  }
};
static_assert(ReadsAhead<Listed>);

}  // namespace

TEST(Grid, ElementsBeyond32Bits) {
  std::int64_t found = -1;
  const auto functor = [&](std::int64_t i) { found = i; };
  const std::int64_t last = blocks_of_elements<decltype(functor)>(kMany) - 1;
  element_at(last, 4, kMany, functor);
  EXPECT_EQ(found, kMany - 1);
  found = -1;
  element_at(last, 5, kMany, functor);
  EXPECT_EQ(found, -1) << "a thread behind the last element";
}

TEST(Grid, ElementsReadAheadBeyond32Bits) {
  std::vector<std::int64_t> read, written;
  const Listed functor{&read, &written};
  const std::int64_t last = blocks_of_elements<Listed>(kMany) - 1;
  element_at(last, 4, kMany, functor);
  EXPECT_EQ(written, std::vector{kMany - 1});
  element_at(last, 5, kMany, functor);
  EXPECT_EQ(written.size(), 1U) << "a thread behind the last element";

  read = written = {};
  element_at(last - 1, 255, kMany, functor);
  std::vector<std::int64_t> expected;
  for (std::int64_t k = 0; k < kAhead; ++k)
    expected.push_back((last - 1) * kBlockThreads * kAhead + 255 + k * kBlockThreads);
  EXPECT_EQ(read, expected);
  EXPECT_EQ(written, expected);
}

TEST(Grid, EveryElementIsReadAndWrittenOnce) {
  for (const std::int64_t n : {1, 255, 256, 257, 2047, 2048, 2049, 5000}) {
    std::vector<std::int64_t> read, written, all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    HostGrid::each(nullptr, n, Listed{&read, &written});
    std::ranges::sort(read);
    std::ranges::sort(written);
    EXPECT_EQ(read, all);
    EXPECT_EQ(written, all);
  }
}

TEST(Grid, ALaneAddsInOrder) {
  for (const std::int64_t n : {0, 3, 16, 127, 128, 129, 1000}) {
    for (int lane = 0; lane < kGroupLanes; ++lane) {
      const auto term = [](std::int64_t i) { return 1.0F / (static_cast<float>(i) + 0.3F); };
      float expected = 0;
      for_lane(lane, n, [&](std::int64_t i) { expected += term(i); });
      EXPECT_EQ(sum_for_lane(lane, n, term), expected) << n << ", lane " << lane;
    }
  }
}

TEST(Grid, RowsBeyond32Bits) {
  const std::int64_t last = blocks_of_rows(kMany) - 1;
  HostGroup lanes;
  std::int64_t found = -1;
  const auto functor = [&](HostGroup& /*group*/, std::int64_t row) { found = row; };
  row_at(last, 4, kMany, lanes, functor);
  EXPECT_EQ(found, kMany - 1);
  found = -1;
  row_at(last, 5, kMany, lanes, functor);
  EXPECT_EQ(found, -1) << "a group behind the last row";
}

TEST(Grid, RowsOfABlockThatFindRoomInSharedMemory) {
  EXPECT_EQ(staged_step(768), 784);
  EXPECT_EQ(staged_step(784), 784);
  EXPECT_EQ(staged_step(785), 816) << "whole rounds over the banks, and half of one";
  EXPECT_EQ(staged_groups(752, kBlockGroups), 16);
  EXPECT_EQ(staged_groups(768, kBlockGroups), 8) << "16 x 784 floats are more than 48 KiB";
  EXPECT_EQ(staged_groups(6128, kBlockGroups), 2);
  EXPECT_EQ(staged_groups(6129, kBlockGroups), 0);
  EXPECT_TRUE(can_be_staged(1, 4, kBlockGroups));
  EXPECT_FALSE(can_be_staged(1, 6, kBlockGroups)) << "no whole packs";
  EXPECT_TRUE(can_be_staged(2, 3064, kBlockGroups));
  EXPECT_FALSE(can_be_staged(2, 3068, kBlockGroups));
  EXPECT_FALSE(can_be_staged(1, 0, kBlockGroups));
}

TEST(Grid, RowsAreStagedAndWrittenInPacks) {
  for (const std::int64_t n : {4, 60, 64, 68, 384, 388, 764, 768, 772, 1540}) {
    std::vector<float> from(static_cast<std::size_t>(3 * n)), to(from.size(), -1.0F);
    std::iota(from.begin(), from.end(), 1.0F);
    HostGrid::staged_rows(nullptr, 3, n, [&](const HostGroup& group, std::int64_t row, float* staged) {
      group.stage(from.data() + row * n, n, staged);
      group.write_packs(to.data() + row * n, n, [=](std::int64_t i) { return read_pack<4>(staged + i); });
    });
    EXPECT_EQ(to, from) << n;
  }
}

TEST(Grid, NoMoreBlocksThanALaunchTakes) {
  const auto blocks = [](std::int64_t n) { return blocks_of_elements<void (*)(std::int64_t)>(n); };
  EXPECT_EQ(grid_size(blocks(1)), 1U);
  EXPECT_EQ(grid_size(blocks(kMaxBlocks * kBlockThreads)), 0x7fffffffU);
  EXPECT_THROW(grid_size(blocks(kMaxBlocks * kBlockThreads + 1)), Error);
  EXPECT_EQ(grid_size(blocks_of_rows(kMaxBlocks * kBlockGroups)), 0x7fffffffU);
  EXPECT_THROW(grid_size(blocks_of_rows(kMaxBlocks * kBlockGroups + 1)), Error);
  EXPECT_THROW(grid_size(0), Error) << "nothing is launched for nothing";
}

}  // namespace lockstep::device
