#include "data/sample_weights.hpp"

#include <gtest/gtest.h>

#include "data/fake_data.hpp"
#include "data/pack.hpp"
#include "data/reader_support.hpp"

namespace lockstep::data {
namespace {

/// Three samples of `cat`, one of `dog`, none of `eel`.
class Animals final : public CountingSet {
 public:
  Animals() : CountingSet(4) {
    info_.source = "animals";
    info_.format = "made up";
    info_.class_names = {"cat", "dog", "eel"};
    info_.class_counts = {3, 1, 0};
    info_.digest = "animals";
  }
  [[nodiscard]] std::int64_t label(std::int64_t id) const override { return id == 3 ? 1 : 0; }
};

std::vector<float> weights_of(const DataSet& set) {
  std::vector<float> weights;
  Sample sample;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    set.read(id, sample);
    EXPECT_EQ(sample.size(), 3U);
    EXPECT_EQ(sample.back().name, kSampleWeight);
    weights.push_back(sample.back().tensor.as<float>()[0]);
  }
  return weights;
}

std::vector<double> by_class(const ClassWeightOptions& options) {
  return class_weights(Animals().info(), options);
}

TEST(ClassWeights, BalancedOnesAreInverseToTheCounts) {
  EXPECT_EQ(by_class({.balanced = true}), (std::vector<double>{4 / (2 * 3.0), 4 / (2 * 1.0), 0}));
}

TEST(ClassWeights, AreGivenByNameOrNumber) {
  EXPECT_EQ(by_class({.by_name = {{"dog", 2.5}}}), (std::vector<double>{1, 2.5, 1}));
  EXPECT_EQ(by_class({.by_number = {1, 2, 3}}), (std::vector<double>{1, 2, 3}));
}

TEST(ClassWeights, MultiplyTheSamplesOwn) {
  const auto weighted = with_class_weights(std::make_shared<Animals>(), {0.5, 2, 0});
  EXPECT_EQ(weights_of(*weighted), (std::vector<float>{0.5F, 0.5F, 0.5F, 2}));
  EXPECT_EQ(weighted->info().features.back().kind, Feature::Kind::weight);
  EXPECT_EQ(weights_of(*with_class_weights(weighted, {3, 4, 0})), (std::vector<float>{1.5F, 1.5F, 1.5F, 8}));
  EXPECT_EQ(weights_of(*with_equal_weights(weighted)), std::vector<float>(4, 1));
}

TEST(ClassWeightErrors, ExactWords) {
  const auto refused = [](const ClassWeightOptions& options) {
    return test::message_of(ExitCode::configuration, [&] { (void)by_class(options); });
  };
  EXPECT_EQ(
      refused({.by_name = {{"dgo", 2}}}),
      "job.data.class_weights: expected names of classes, found 'dgo', which is none of the training set's 3; did "
      "you mean 'dog'?");
  EXPECT_EQ(refused({.by_number = {1, 2}}), "job.data.class_weights: expected 3 weights, one for each class, found 2");
  EXPECT_EQ(refused({.by_number = {0, 0, 5}}),
            "job.data.class_weights: expected a weight above 0 for a class that has training samples, found none");
  DataSetInfo text;
  text.format = "text";
  EXPECT_EQ(test::message_of(ExitCode::configuration, [&] { (void)class_weights(text, {.balanced = true}); }),
            "job.data.class_weights: expected samples of one class each, found text; leave class_weights out");
}

TEST(WeightsOfAFile, AreOneALine) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "weights.txt", "1\n0.5\r\n 2e0\n0\n");
  const auto weighted = with_weights_of(std::make_unique<Animals>(), folder / "weights.txt");
  EXPECT_EQ(weights_of(*weighted), (std::vector<float>{1, 0.5F, 2, 0}));
  test::write_file(folder / "others.txt", "1\n1\n1\n1\n");
  EXPECT_NE(with_weights_of(std::make_unique<Animals>(), folder / "others.txt")->info().digest,
            weighted->info().digest);
}

TEST(WeightsOfAFile, AreNotPacked) {
  const test::TemporaryFolder folder;
  const auto weighted = with_equal_weights(std::make_shared<Animals>());
  EXPECT_EQ(test::message_of(ExitCode::usage, [&] { (void)pack(*weighted, folder / "a.pack", {}); }),
            "animals: weights are not packed; leave them out here, and give the pack their file: packed: {path: ..., "
            "weights: ...}");
}

TEST(WeightsOfAFileErrors, ExactWords) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& text) {
    test::write_file(folder / "weights.txt", text);
    return test::without(
        test::message_of(ExitCode::data,
                         [&] { (void)with_weights_of(std::make_unique<Animals>(), folder / "weights.txt"); }),
        folder.path());
  };
  EXPECT_EQ(refused("1\n-1\n1\n1\n"), "weights.txt:2: expected a weight, a number of at least 0, found '-1'");
  EXPECT_EQ(refused("1\n\n1\n1\n"), "weights.txt:2: expected a weight, a number of at least 0, found ''");
  EXPECT_EQ(refused("1\n1\n1\n1e99\n"), "weights.txt:4: expected a weight, a number of at least 0, found '1e99'");
  EXPECT_EQ(refused("1\n1\n"), "weights.txt: expected 4 weights, one a line for each sample of animals, found 2");
}

}  // namespace
}  // namespace lockstep::data
