// The cuts of a bucket, however many ranks there are.
#include "comm/reduce/slices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::comm {
namespace {

TEST(Slices, AreTheBoundsThatAreNotEmpty) {
  std::mt19937 random(1);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int64_t> tensors(static_cast<std::size_t>(between(0, 4)));
    std::int64_t elements = 0;
    for (auto& size : tensors) elements += size = between(1, 3 * kChunkElements);
    const auto cuts = chunk_cuts(tensors);
    const int ranks = between(1, 40);
    const auto bounds = slice_bounds(elements, cuts, ranks);
    std::vector<Slice> expected;
    for (int r = 0; r < ranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      if (bounds[i + 1] > bounds[i]) expected.push_back({r, bounds[i], bounds[i + 1] - bounds[i]});
    }
    const auto found = slices_of({{elements}, {cuts}}, 0, ranks);
    ASSERT_EQ(found.size(), expected.size()) << elements << " elements, " << ranks << " ranks";
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].owner, expected[i].owner);
      EXPECT_EQ(found[i].first, expected[i].first);
      EXPECT_EQ(found[i].size, expected[i].size);
    }
  }
}

TEST(Slices, AreAsManyAsChunksAtMost) {
  const auto cuts = chunk_cuts(std::vector<std::int64_t>{64 * kChunkElements});
  for (const int ranks : {64, 1000, 1'000'000}) {
    const auto slices = slices_of({{64 * kChunkElements}, {cuts}}, 0, ranks);
    EXPECT_EQ(slices.size(), 64U);
    std::int64_t end = 0;
    for (const Slice& slice : slices) {
      EXPECT_EQ(slice.first, end);
      EXPECT_LT(slice.owner, ranks);
      end += slice.size;
    }
    EXPECT_EQ(end, 64 * kChunkElements);
  }
}

// Of 100 buckets of 64 chunks each, a rank owns what it would of one large bucket, give or take a chunk.
TEST(Slices, AreSpreadOverAllRanks) {
  constexpr int kBuckets = 100, kChunks = 64;
  BucketLayout layout;
  layout.spread_owners = true;
  for (int b = 0; b < kBuckets; ++b) {
    layout.bucket_elements.push_back(kChunks * kChunkElements);
    layout.cuts.push_back(chunk_cuts(std::vector<std::int64_t>{kChunks * kChunkElements}));
  }
  for (const int ranks : {3, 64, 65, 100, 256, 1000, 16'384}) {
    std::vector<std::int64_t> owned(static_cast<std::size_t>(ranks));
    for (int b = 0; b < kBuckets; ++b) {
      std::vector<int> owners;
      for (const Slice& slice : slices_of(layout, b, ranks)) {
        owned.at(static_cast<std::size_t>(slice.owner)) += slice.size;
        owners.push_back(slice.owner);
      }
      std::sort(owners.begin(), owners.end());
      EXPECT_EQ(std::adjacent_find(owners.begin(), owners.end()), owners.end()) << "a rank has one slice of a bucket";
    }
    const auto most = *std::max_element(owned.begin(), owned.end());
    EXPECT_LE(most, 1.3 * kBuckets * kChunks / ranks * kChunkElements + kChunkElements) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace lockstep::comm
