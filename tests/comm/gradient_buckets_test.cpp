// What a bucket consists of, and how it is cut, for any number of ranks.
#include "comm/reduce/gradient_buckets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::comm {
namespace {

TEST(GradientBuckets, AreContiguousAndCutAtChunks) {
  using Shapes = std::vector<GradientBuckets::SlotShape>;
  const auto all = GradientBuckets::of_slots(Shapes{{10}, {5000}, {3}, {9000}}, 16000, 1);
  ASSERT_EQ(all.count(), 2);
  EXPECT_EQ(all.at(0).first_slot, 0);
  EXPECT_EQ(all.at(0).last_slot, 2);
  EXPECT_EQ(all.at(0).elements, 16 + 5008);
  EXPECT_EQ(all.at(0).cuts, (std::vector<std::int64_t>{0, 16, 16 + 4096}));
  EXPECT_EQ(all.at(1).cuts, (std::vector<std::int64_t>{0, 16, 16 + 4096, 16 + 8192}));
  EXPECT_EQ(all.slots[1].offset, 16);
}

TEST(GradientBuckets, CloseWhereTheWayOfTheirSumsChanges) {
  using Shapes = std::vector<GradientBuckets::SlotShape>;
  const auto all = GradientBuckets::of_slots(
      Shapes{{10}, {20}, {30, true}, {90'000, true, 7}, {40, true}, {50, true}, {90'000, true, 7}}, 1 << 20, 1);
  ASSERT_EQ(all.count(), 5);
  std::vector<std::int32_t> first;
  std::vector<bool> scattered;
  for (const auto& bucket : all.buckets) {
    first.push_back(bucket.first_slot);
    scattered.push_back(bucket.scattered);
  }
  EXPECT_EQ(first, (std::vector<std::int32_t>{0, 2, 3, 4, 6}));
  EXPECT_EQ(scattered, (std::vector<bool>{false, true, true, true, true}));
}

// Two uses of one weight, with other buckets in between.
TEST(GradientBuckets, SlotsThatAreAlikeHaveTheSameOwners) {
  using Shapes = std::vector<GradientBuckets::SlotShape>;
  auto all = GradientBuckets::of_slots(Shapes{{9000, true}, {20'000, true, 3}, {100, true}, {20'000, true, 3}}, 1, 1);
  ASSERT_EQ(all.count(), 4);
  for (const bool spread : {false, true}) {
    all.spread_owners = spread;
    for (const int ranks : {2, 3, 5, 8, 40}) {
      const auto a = slices_of(all, 1, ranks), b = slices_of(all, 3, ranks);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].owner, b[i].owner);
        EXPECT_EQ(a[i].first, b[i].first);
        EXPECT_EQ(a[i].size, b[i].size);
      }
    }
  }
}

// A library gathers equal slices in one call. No chunk of a tensor is divided, and no tensor that has one owner.
TEST(GradientBuckets, SlicesAreEqualAroundGaps) {
  std::mt19937 random(2);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int left = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<GradientBuckets::SlotShape> shapes(static_cast<std::size_t>(between(1, 9)));
    for (auto& shape : shapes) {
      shape.elements = between(1, between(0, 1) == 0 ? 100 : 40 * kChunkElements);
      shape.uncut = between(0, 9) == 0;
    }
    const int ranks = between(2, 9);
    auto all = GradientBuckets::of_slots(shapes, between(1, 1 << 22), 1);
    const auto before = all;
    all.make_slices_equal(shapes, ranks);
    for (int b = 0; b < all.count(); ++b) {
      const auto bounds = slice_bounds(all.at(b), ranks);
      const std::int64_t each = all.at(b).elements / ranks;
      bool equal = true;
      for (int r = 0; r < ranks; ++r) equal = equal && bounds[static_cast<std::size_t>(r) + 1] == (r + 1) * each;
      if (all.at(b).elements == before.at(b).elements && !equal) {  // gaps would take too much
        ++left;
        continue;
      }
      ASSERT_TRUE(equal) << "round " << round << ", bucket " << b;
      std::int64_t end = 0;
      for (auto s = all.at(b).first_slot; s < all.at(b).last_slot; ++s) {
        const auto slot = static_cast<std::size_t>(s);
        const std::int64_t start = all.slots[slot].offset;
        ASSERT_GE(start, end);
        ASSERT_EQ(start % 16, 0);
        end = start + shapes[slot].elements;
        const std::int64_t chunk = shapes[slot].uncut ? shapes[slot].elements : kChunkElements;
        for (int r = 1; r < ranks; ++r) {
          if (r * each <= start || r * each >= end) continue;
          ASSERT_EQ((r * each - start) % chunk, 0) << "round " << round;
        }
      }
      ASSERT_LE(end, all.at(b).elements);
    }
  }
  EXPECT_LT(left, 200);
}

TEST(Slices, AreTheBoundsThatAreNotEmpty) {
  std::mt19937 random(1);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int64_t> tensors(static_cast<std::size_t>(between(0, 4)));
    std::int64_t elements = 0;
    for (auto& size : tensors) elements += size = between(1, 3 * kChunkElements);
    const int ranks = between(1, 40);
    const auto bounds = slice_bounds(bucket_of(tensors), ranks);
    std::vector<Slice> expected;
    for (int r = 0; r < ranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      if (bounds[i + 1] > bounds[i]) expected.push_back({r, bounds[i], bounds[i + 1] - bounds[i]});
    }
    const auto found = slices_of({.buckets = {bucket_of(tensors)}}, 0, ranks);
    ASSERT_EQ(found.size(), expected.size()) << elements << " elements, " << ranks << " ranks";
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].owner, expected[i].owner);
      EXPECT_EQ(found[i].first, expected[i].first);
      EXPECT_EQ(found[i].size, expected[i].size);
    }
  }
}

TEST(Slices, AreAsManyAsChunksAtMost) {
  GradientBuckets buckets;
  buckets.buckets.emplace_back().append(64 * kChunkElements);
  for (const int ranks : {64, 1000, 1'000'000}) {
    const auto slices = slices_of(buckets, 0, ranks);
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

// Of 100 buckets of 64 chunks each, a rank owns as much as of one large bucket, up to a chunk.
TEST(Slices, AreSpreadOverAllRanks) {
  constexpr int kBuckets = 100, kChunks = 64;
  GradientBuckets buckets;
  buckets.spread_owners = true;
  for (int b = 0; b < kBuckets; ++b) buckets.buckets.emplace_back().append(kChunks * kChunkElements);
  for (const int ranks : {3, 64, 65, 100, 256, 1000, 16'384}) {
    std::vector<std::int64_t> owned(static_cast<std::size_t>(ranks));
    for (int b = 0; b < kBuckets; ++b) {
      std::vector<int> owners;
      for (const Slice& slice : slices_of(buckets, b, ranks)) {
        owned.at(static_cast<std::size_t>(slice.owner)) += slice.size;
        owners.push_back(slice.owner);
      }
      std::sort(owners.begin(), owners.end());
      EXPECT_EQ(std::adjacent_find(owners.begin(), owners.end()), owners.end()) << "a rank has one slice of a bucket";
    }
    const auto max_owned = *std::max_element(owned.begin(), owned.end());
    EXPECT_LE(max_owned, 1.3 * kBuckets * kChunks / ranks * kChunkElements + kChunkElements) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace lockstep::comm
