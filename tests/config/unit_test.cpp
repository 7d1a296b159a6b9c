// Small parts: scalars, paths of overrides, micro-batches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/micro_batches.hpp"
#include "config/overrides.hpp"
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

TEST(MicroBatches, OfTextTheDefaultIsTheLargestDivisorUpTo32) {
  EXPECT_EQ(default_micro_batches(64, MicroBatchWork::sequences), 32);
  EXPECT_EQ(default_micro_batches(12, MicroBatchWork::sequences), 12);
  EXPECT_EQ(default_micro_batches(100, MicroBatchWork::sequences), 25);
  EXPECT_EQ(default_micro_batches(97, MicroBatchWork::sequences), 1) << "a prime above 32";
  EXPECT_EQ(default_micro_batches(1, MicroBatchWork::sequences), 1);
}

TEST(MicroBatches, OfOtherSamplesAMicroBatchHas8) {
  EXPECT_EQ(default_micro_batches(64, MicroBatchWork::samples), 8);
  EXPECT_EQ(default_micro_batches(128, MicroBatchWork::samples), 16);
  EXPECT_EQ(default_micro_batches(1024, MicroBatchWork::samples), 32);
  EXPECT_EQ(default_micro_batches(100, MicroBatchWork::samples), 10);
  EXPECT_EQ(default_micro_batches(16, MicroBatchWork::samples), 4)
      << "some parallelism, though micro-batches are small";
  EXPECT_EQ(default_micro_batches(6, MicroBatchWork::samples), 3);
  EXPECT_EQ(default_micro_batches(97, MicroBatchWork::samples), 1);
}

TEST(MicroBatches, BatchNormKeeps16SamplesInAMicroBatch) {
  EXPECT_EQ(default_micro_batches(128, MicroBatchWork::batch_statistics), 8);
  EXPECT_EQ(default_micro_batches(1024, MicroBatchWork::batch_statistics), 32);
  EXPECT_EQ(default_micro_batches(16, MicroBatchWork::batch_statistics), 1);
  EXPECT_EQ(default_micro_batches(24, MicroBatchWork::batch_statistics), 1);
}

TEST(MicroBatches, WhatAutoChoseIsToldWithWhatOthersWouldGive) {
  const Catalogue catalogue = test_catalogue();
  const auto told = [&](std::int64_t batch, std::int64_t micro_batches) {
    Job job;
    job.model.zoo = "mlp";
    job.batch_size = batch;
    job.micro_batches = micro_batches;
    return explain_micro_batches(job, catalogue);
  };
  EXPECT_EQ(told(64, 8),
            "micro_batches: auto chose 8; micro_batches=4 would allow 4 ranks, more work a micro-batch (16 samples); "
            "micro_batches=16 would allow "
            "16 ranks, less work a micro-batch (4 samples)");
  EXPECT_EQ(told(4, 4),
            "micro_batches: auto chose 4; micro_batches=2 would allow 2 ranks, more work a micro-batch (2 samples)");
  EXPECT_EQ(told(97, 1),
            "micro_batches: auto makes one micro-batch of a batch of 97, which one thread of one rank computes; "
            "batch_size=96 "
            "would be 12 micro-batches");
  JobFile written;
  written.batch_size = 64;
  written.micro_batches = 8;
  written.places["job.micro_batches"] = Place{};
  EXPECT_EQ(explain_micro_batches(written, catalogue), "");
}

TEST(MicroBatches, FinerBatchIsNearAndHasMoreMicroBatches) {
  const Catalogue catalogue = test_catalogue();
  const auto finer = [&](const std::string& model, std::int64_t batch, std::int64_t micro_batches) {
    Job job;
    job.model.zoo = model;
    job.batch_size = batch;
    job.micro_batches = micro_batches;
    const auto found = finer_batch(job, catalogue);
    return found ? fmt::format("{} in {}", found->batch_size, found->micro_batches) : "none";
  };
  EXPECT_EQ(finer("resnet", 100, 5), "128 in 8") << "16 samples a micro-batch, for batch norm";
  EXPECT_EQ(finer("mlp", 97, 1), "96 in 12");
  EXPECT_EQ(finer("mlp", 64, 4), "64 in 8") << "the batch is good already";
  EXPECT_EQ(finer("mlp", 97, 8), "none") << "8 micro-batches are fine enough";
  EXPECT_EQ(finer("mlp", 1, 1), "none");
  EXPECT_EQ(finer("mlp", 9007199254740881, 1), "9007199254740882 in 26") << "at once, however large the batch is";
}

TEST(MicroBatches, NearDivisors) {
  EXPECT_EQ(near_divisors(100, 8), (std::vector<std::int64_t>{5, 10}));
  EXPECT_EQ(near_divisors(4, 8), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(near_divisors(97, 3), (std::vector<std::int64_t>{1, 97}));
  EXPECT_EQ(near_divisors(9007199254740881, 4503599627370497), (std::vector<std::int64_t>{1, 9007199254740881}))
      << "at once, however large the batch is";
}

}  // namespace
}  // namespace lockstep::config
