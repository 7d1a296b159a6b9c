#include "data/sample_identities.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fake_data.hpp"

namespace lockstep {
namespace {

/// Sample i is the number `first` + i.
class Numbers final : public data::CountingSet, public data::KnowsIdentities {
 public:
  Numbers(std::int64_t first, std::int64_t size, const std::string& format = "images")
      : CountingSet(size), first_(first) {
    info_.format = format;
  }
  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override {
    out.push_back(data::identity_of(fmt::format("{}", first_ + id)));
  }

 private:
  std::int64_t first_;
};

std::string shared(const Numbers& set, const Numbers& train) {
  return data::shared_samples(set, data::sketch_of(train));
}

TEST(IdentitySketch, OfASmallSetKnowsEachSample) {
  const Numbers train(0, 1000);
  EXPECT_EQ(shared({999, 3}, train), "1 of 3 samples is in the training set, too: #0");
  EXPECT_EQ(shared({1000, 1000}, train), "");
  EXPECT_EQ(shared({0, 1000}, train), data::shared_samples(Numbers(0, 1000), train));
  EXPECT_EQ(shared({0, 3}, {0, 0}), "");
}

TEST(IdentitySketch, OfASmallSetIsHashedOnce) {
  const Numbers train(0, 1000), large(0, 300'000);
  std::vector<std::uint64_t> all;
  EXPECT_EQ(data::sketch_of(train, &all).smallest, data::sketch_of(train).smallest);
  EXPECT_EQ(data::shared_samples(Numbers(990, 20), all), data::shared_samples(Numbers(990, 20), train));
  EXPECT_EQ(data::shared_samples(Numbers(1000, 20), all), "");
  all.clear();
  (void)data::sketch_of(large, &all);
  EXPECT_TRUE(all.empty());
}

TEST(IdentitySketch, OfALargeSetKnowsAShare) {
  const Numbers train(0, 100'000);
  const data::IdentitySketch sketch = data::sketch_of(train);
  EXPECT_EQ(sketch.smallest.size(), data::IdentitySketch::kMost);
  EXPECT_FALSE(sketch.is_whole());
  // About 4,096 of 100,000 samples, and as large a share of others, can be compared.
  EXPECT_EQ(data::shared_samples(Numbers(100'000, 10'000), sketch), "");
  const std::string found = data::shared_samples(Numbers(99'000, 2000), sketch);
  EXPECT_NE(found.find(" samples that can be compared are in the training set, too: #"), std::string::npos) << found;
  EXPECT_NE(data::shared_samples(Numbers(0, 50'000), sketch), "");
}

TEST(IdentitySketch, RowsMayBeAlikeByChance) {
  const Numbers train(0, 1000, "table");
  EXPECT_EQ(shared({900, 1000, "table"}, train), "");
  EXPECT_EQ(shared({500, 1000, "table"}, train).substr(0, 52), "500 of 1000 samples are in the training set, too: #0");
  EXPECT_EQ(shared({0, 1000, "text, bytes"}, {0, 1000, "text, bytes"}), "");  // windows, which would have to be read
}

}  // namespace
}  // namespace lockstep
