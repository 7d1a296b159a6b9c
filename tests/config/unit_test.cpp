// Small parts: scalars, paths of overrides, shards.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/overrides.hpp"
#include "config/shards.hpp"
#include "config/test_catalogue.hpp"
#include "config/yaml_node.hpp"

namespace lockstep::config {
namespace {

YamlNode plain(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  return node;
}

TEST(Scalar, NumbersAreDecimal) {
  for (const auto* text : {"0", "-1", "+2.5", "1e+06", "1.", ".5", "3E-4", ".inf", "-.INF", ".nan"}) {
    EXPECT_EQ(scalar_type(plain(text)), ScalarType::number) << text;
  }
  for (const auto* text : {"", "-", ".", "1e", "e5", "0x10", "1_000", "1.2.3", "1 ", "12:30", "inf", "nan", "--1"}) {
    EXPECT_EQ(scalar_type(plain(text)), ScalarType::text) << text;
  }
  EXPECT_EQ(number_of(plain("1e+06")), 1'000'000);
}

TEST(Scalar, OnlyTrueAndFalseAreBooleans) {
  EXPECT_EQ(scalar_type(plain("true")), ScalarType::boolean);
  EXPECT_EQ(scalar_type(plain("yes")), ScalarType::text);
  YamlNode quoted = plain("true");
  quoted.quoted = true;
  EXPECT_EQ(scalar_type(quoted), ScalarType::text);
}

TEST(OverridePath, SplitsKeysAndIndices) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split_path("batch_size"), Parts{"batch_size"});
  EXPECT_EQ(split_path("model.layers[2].conv.filters"), (Parts{"model", "layers", "[2]", "conv", "filters"}));
  EXPECT_EQ(split_path("a[0][12]"), (Parts{"a", "[0]", "[12]"}));
  for (const auto* text : {"", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[1]b", "a[1].", "a[-1]", "a[1].[2]"}) {
    EXPECT_EQ(split_path(text), Parts{}) << text;
  }
}

TEST(Shards, OfTextTheDefaultIsTheLargestDivisorUpTo32) {
  EXPECT_EQ(default_shards(64, ShardWork::sequences), 32);
  EXPECT_EQ(default_shards(12, ShardWork::sequences), 12);
  EXPECT_EQ(default_shards(100, ShardWork::sequences), 25);
  EXPECT_EQ(default_shards(97, ShardWork::sequences), 1) << "a prime above 32";
  EXPECT_EQ(default_shards(1, ShardWork::sequences), 1);
}

TEST(Shards, OfOtherSamplesAShardHas8) {
  EXPECT_EQ(default_shards(64, ShardWork::samples), 8);
  EXPECT_EQ(default_shards(128, ShardWork::samples), 16);
  EXPECT_EQ(default_shards(1024, ShardWork::samples), 32);
  EXPECT_EQ(default_shards(100, ShardWork::samples), 10);
  EXPECT_EQ(default_shards(16, ShardWork::samples), 4) << "some parallelism, though shards are small";
  EXPECT_EQ(default_shards(6, ShardWork::samples), 3);
  EXPECT_EQ(default_shards(97, ShardWork::samples), 1);
}

TEST(Shards, BatchNormKeeps16SamplesInAShard) {
  EXPECT_EQ(default_shards(128, ShardWork::batch_statistics), 8);
  EXPECT_EQ(default_shards(1024, ShardWork::batch_statistics), 32);
  EXPECT_EQ(default_shards(16, ShardWork::batch_statistics), 1);
  EXPECT_EQ(default_shards(24, ShardWork::batch_statistics), 1);
}

TEST(Shards, WhatAutoChoseIsToldWithWhatOthersWouldGive) {
  const Catalogue catalogue = test_catalogue();
  const auto told = [&](std::int64_t batch, std::int64_t shards) {
    Job job;
    job.model.zoo = "mlp";
    job.batch_size = batch;
    job.shards = shards;
    return explain_shards(job, catalogue);
  };
  EXPECT_EQ(told(64, 8),
            "shards: auto chose 8; shards=4 would allow 4 ranks, more work a shard (16 samples); shards=16 would allow "
            "16 ranks, less work a shard (4 samples)");
  EXPECT_EQ(told(4, 4), "shards: auto chose 4; shards=2 would allow 2 ranks, more work a shard (2 samples)");
  EXPECT_EQ(told(97, 1),
            "shards: auto makes one shard of a batch of 97, which one thread of one rank computes; batch_size=96 "
            "would be 12 shards");
  JobFile written;
  written.batch_size = 64;
  written.shards = 8;
  written.places["job.shards"] = Place{};
  EXPECT_EQ(explain_shards(written, catalogue), "");
}

TEST(Shards, FinerBatchIsNearAndHasMoreShards) {
  const Catalogue catalogue = test_catalogue();
  const auto finer = [&](const std::string& model, std::int64_t batch, std::int64_t shards) {
    Job job;
    job.model.zoo = model;
    job.batch_size = batch;
    job.shards = shards;
    const auto found = finer_batch(job, catalogue);
    return found ? fmt::format("{} in {}", found->batch_size, found->shards) : "none";
  };
  EXPECT_EQ(finer("resnet", 100, 5), "128 in 8") << "16 samples a shard, for batch norm";
  EXPECT_EQ(finer("mlp", 97, 1), "96 in 12");
  EXPECT_EQ(finer("mlp", 64, 4), "64 in 8") << "the batch is good already";
  EXPECT_EQ(finer("mlp", 97, 8), "none") << "8 shards are fine enough";
  EXPECT_EQ(finer("mlp", 1, 1), "none");
  EXPECT_EQ(finer("mlp", 9007199254740881, 1), "9007199254740882 in 26") << "at once, however large the batch is";
}

TEST(Shards, NearDivisors) {
  EXPECT_EQ(near_divisors(100, 8), (std::vector<std::int64_t>{5, 10}));
  EXPECT_EQ(near_divisors(4, 8), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(near_divisors(97, 3), (std::vector<std::int64_t>{1, 97}));
  EXPECT_EQ(near_divisors(9007199254740881, 4503599627370497), (std::vector<std::int64_t>{1, 9007199254740881}))
      << "at once, however large the batch is";
}

}  // namespace
}  // namespace lockstep::config
