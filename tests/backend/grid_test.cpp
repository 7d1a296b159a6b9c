// How many blocks a grid has, and which element or row a thread gets where these are more than 32 bits count.
#include "backend/gpu/grid.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "backend/gpu/grid_size.hpp"
#include "lockstep/error.hpp"

namespace lockstep::backend {

namespace {

constexpr std::int64_t kMany = (std::int64_t{1} << 33) + 5;

}  // namespace

TEST(Grid, ElementsBeyond32Bits) {
  const std::int64_t last = blocks_of_elements(kMany) - 1;
  std::int64_t found = -1;
  const auto body = [&](std::int64_t i) { found = i; };
  element_at(last, 4, kMany, body);
  EXPECT_EQ(found, kMany - 1);
  found = -1;
  element_at(last, 5, kMany, body);
  EXPECT_EQ(found, -1) << "a thread behind the last element";
}

TEST(Grid, RowsBeyond32Bits) {
  const std::int64_t last = blocks_of_rows(kMany) - 1;
  HostGroup lanes;
  std::int64_t found = -1;
  const auto body = [&](HostGroup& /*group*/, std::int64_t row) { found = row; };
  row_at(last, 4, kMany, lanes, body);
  EXPECT_EQ(found, kMany - 1);
  found = -1;
  row_at(last, 5, kMany, lanes, body);
  EXPECT_EQ(found, -1) << "a group behind the last row";
}

TEST(Grid, NoMoreBlocksThanALaunchTakes) {
  EXPECT_EQ(grid_size(blocks_of_elements(1)), 1U);
  EXPECT_EQ(grid_size(blocks_of_elements(kMostBlocks * kBlockThreads)), 0x7fffffffU);
  EXPECT_THROW(grid_size(blocks_of_elements(kMostBlocks * kBlockThreads + 1)), Error);
  EXPECT_EQ(grid_size(blocks_of_rows(kMostBlocks * kBlockGroups)), 0x7fffffffU);
  EXPECT_THROW(grid_size(blocks_of_rows(kMostBlocks * kBlockGroups + 1)), Error);
  EXPECT_THROW(grid_size(0), Error) << "nothing is launched for nothing";
}

}  // namespace lockstep::backend
