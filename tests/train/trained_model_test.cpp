// TrainedModel: the model of a run is evaluated as in the run itself, predicts the same with any number of threads, and
// is saved completely.
#include "lockstep/trained_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <thread>

#include "allocation_counter.hpp"
#include "lockstep/error.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

class TrainedModels : public testing::Test {
 protected:
  TrainedModels() {
    Events events;
    result = run(folder.path(), {}, events);
  }
  [[nodiscard]] JobFile job(std::vector<std::string> overrides = {}) const {
    return load_job(folder.path(), overrides, registries, false);
  }

  const Registries registries = Registries::built_in();
  const Folder folder;
  const std::unique_ptr<Communicator> alone = make_single_communicator();
  TrainResult result;
};

Sample image_of(const Feature& feature, std::uint8_t first) {
  Sample sample;
  sample.push_back({feature.name, Tensor(feature.spec)});
  const auto pixels = sample[0].tensor.as<std::uint8_t>();
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(first + 7 * i);
  return sample;
}

std::vector<std::vector<float>> predictions_of(const TrainedModel& model) {
  std::vector<Sample> samples;
  for (int i = 0; i < 9; ++i) samples.push_back(image_of(model.inputs().at(0), static_cast<std::uint8_t>(20 * i)));
  std::vector<std::vector<float>> predictions;
  for (const Tensor& tensor : model.predict(samples)) {
    EXPECT_EQ(tensor.shape(), model.prediction_shape());
    predictions.emplace_back(tensor.as<float>().begin(), tensor.as<float>().end());
  }
  return predictions;
}

template <class Call>
void expect_usage_error(const Call& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.what(), text);
  }
}

}  // namespace

TEST_F(TrainedModels, EvaluateAsTheRunDid) {
  for (const int ranks : {1, 2, 3}) {
    run_in_threads(ranks, [&](Communicator& communicator) {
      TrainedModel model(job(), "newest", registries, communicator);
      EXPECT_EQ(model.step(), 12);
      EXPECT_EQ(model.path(), folder.path() + "/checkpoints/step-00000012");
      EXPECT_EQ(model.parameters_sha256(), result.parameters_sha256);
      const EvaluationResult evaluated = model.evaluate("validation");
      EXPECT_EQ(evaluated.metrics, result.metrics);
      EXPECT_EQ(evaluated.samples, 40);
      EXPECT_EQ(model.evaluate("train").samples, 64);
    });
  }
}

TEST_F(TrainedModels, PredictTheSameWithAnyNumberOfThreads) {
  TrainedModel model(job({"threads=1"}), "newest", registries, *alone),
      other(job({"threads=3"}), "newest", registries, *alone);
  EXPECT_EQ(model.data().class_names.size(), 10u);
  EXPECT_EQ(model.prediction_shape(), Shape{10});
  const auto predictions = predictions_of(model);
  EXPECT_EQ(predictions.size(), 9u);
  EXPECT_NE(predictions[0], predictions[1]);
  EXPECT_EQ(predictions, predictions_of(other));
  EXPECT_EQ(predictions, predictions_of(model)) << "again";
  double sum = 0;
  for (const double probability : probabilities(predictions[0])) sum += probability;
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST_F(TrainedModels, AreSavedWhole) {
  TrainedModel model(job(), "newest", registries, *alone);
  const std::string file = folder.path() + "/model.safetensors";
  model.save(file);
  TrainedModel again(job(), file, registries, *alone);
  EXPECT_EQ(again.step(), -1);
  EXPECT_EQ(again.path(), file);
  EXPECT_EQ(again.parameters_sha256(), result.parameters_sha256);
  EXPECT_EQ(again.evaluate("validation").metrics, result.metrics);
  EXPECT_EQ(predictions_of(again), predictions_of(model));
}

TEST_F(TrainedModels, NameWhatIsMissing) {
  TrainedModel model(job(), "newest", registries, *alone);
  expect_usage_error([&] { (void)model.evaluate("weather"); },
                     "expected the set validation, test or train, found 'weather'");
  std::vector<Sample> samples;
  samples.push_back(image_of(model.inputs().at(0), 0));
  samples.push_back(image_of(model.inputs().at(0), 0));
  samples[1][0].name = "picture";
  expect_usage_error([&] { (void)model.predict(samples); },
                     "sample 1: expected 'image', which the model reads; it has no tensor of that name");
}

namespace {

constexpr int kImages = 9;

/// The images of predictions_of(), one behind the other.
std::vector<std::byte> images_of(const TrainedModel& model) {
  std::vector<std::byte> images;
  for (int i = 0; i < kImages; ++i) {
    const Sample sample = image_of(model.inputs().at(0), static_cast<std::uint8_t>(20 * i));
    const Tensor& image = sample[0].tensor;
    images.insert(images.end(), image.bytes(), image.bytes() + image.spec().bytes());
  }
  return images;
}

std::vector<float> joined(const std::vector<std::vector<float>>& rows) {
  std::vector<float> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  return values;
}

}  // namespace

TEST_F(TrainedModels, PredictOnSeveralThreadsAtOnce) {
  const TrainedModel model(job({"threads=2"}), "newest", registries, *alone);
  const auto expected = predictions_of(model);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int again = 0; again < 20; ++again) EXPECT_EQ(predictions_of(model), expected);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(TrainedModels, PredictArraysWithoutAllocating) {
  const TrainedModel model(job(), "newest", registries, *alone);
  const std::vector<float> expected = joined(predictions_of(model));
  const std::vector<std::byte> images = images_of(model);
  const std::array<const std::byte*, 1> inputs{images.data()};
  for (const std::int64_t batch : {1, 2, 4, 16}) {
    Predictor predictor(model, batch);
    std::vector<float> predictions(expected.size());
    predictor.predict(kImages, inputs, predictions);
    EXPECT_EQ(predictions, expected) << "by " << batch;
    const std::size_t before = allocations().all;
    predictor.predict(kImages, inputs, predictions);
    EXPECT_EQ(allocations().all, before);
    EXPECT_EQ(predictions, expected) << "again by " << batch;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Predictor predictor(model, 4);
      std::vector<float> predictions(expected.size());
      for (int again = 0; again < 20; ++again) {
        predictor.predict(kImages, inputs, predictions);
        EXPECT_EQ(predictions, expected);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(TrainedModels, PredictNoArraysOfOtherSizes) {
  const TrainedModel model(job(), "newest", registries, *alone);
  const std::vector<std::byte> images = images_of(model);
  const std::array<const std::byte*, 1> inputs{images.data()};
  std::vector<float> predictions(10);
  Predictor predictor(model);
  expect_usage_error([&] { predictor.predict(2, inputs, predictions); },
                     "expected 1 inputs and 20 values for the predictions of 2 samples, found 1 and 10");
  expect_usage_error([&] { predictor.predict(1, {}, predictions); },
                     "expected 1 inputs and 10 values for the predictions of 1 samples, found 0 and 10");
  expect_usage_error([&] { (void)Predictor(model, 0); }, "expected a batch of at least 1 sample, found 0");
}

TEST_F(TrainedModels, SayWhichTypeATensorHas) {
  const TrainedModel model(job(), "newest", registries, *alone);
  const Feature& input = model.inputs().at(0);
  std::vector<Sample> samples(1);
  samples[0].push_back({"image", Tensor({DType::f32, input.spec.shape})});
  try {
    (void)model.predict(samples);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_STREQ(error.what(), "sample 0, 'image': expected u8 [28, 28, 1], found f32 [28, 28, 1]");
  }
}

TEST(Predictor, RowsThatAreNotUsedAreNoMistake) {
  const Registries registries = Registries::built_in();
  const Folder folder;
  {
    std::ofstream text(folder.path() + "/text");
    for (int i = 0; i < 400; ++i) text << "abcdefgh "[i % 9];
  }
  const JobFile job = config::load_text(
      "job:\n  model: {gpt: {layers: 1, width: 8, heads: 2}}\n  data: {train: {text: {path: " + folder.path() +
          "/text, context: 8}}}\n  batch_size: 4\n  steps: 1\n  run_directory: " + folder.path() + "/run\n",
      "job.yaml", {}, train::catalogue_of(registries), true);
  const auto alone = make_single_communicator();
  (void)train_job(job, *alone, registries);
  const TrainedModel model(job, "newest", registries, *alone);
  Tensor tokens(model.inputs().at(0).spec);
  std::fill_n(tokens.as<std::int32_t>().begin(), tokens.elements(), 1);
  std::vector<float> one(elements(model.prediction_shape())), of_many(one.size());
  const std::array<const std::byte*, 1> inputs{tokens.bytes()};
  Predictor(model, 1).predict(1, inputs, one);
  Predictor predictor(model, 16);
  predictor.predict(1, inputs, of_many);
  EXPECT_EQ(of_many, one);
  tokens.as<std::int32_t>()[0] = 1'000'000;
  EXPECT_THROW(predictor.predict(1, inputs, of_many), Error);
  tokens.as<std::int32_t>()[0] = 1;
  predictor.predict(1, inputs, of_many);
  EXPECT_EQ(of_many, one) << "after a mistake";
}

}  // namespace lockstep
