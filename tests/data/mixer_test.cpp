// Mixing the samples of a micro-batch: what stays and what comes from the partner, by published formulas; the draws of
// a sample depend on nothing but the sample and the epoch.
#include "data/mixer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/digits.hpp"
#include "data/exact_math.hpp"
#include "data/loader.hpp"
#include "data/soft_labels.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

constexpr std::int64_t kSide = 8, kPixels = kSide * kSide * 3, kClasses = 4;

std::vector<Feature> features(std::int64_t side = kSide) {
  return {{"image", Feature::Kind::image, {DType::f32, {side, side, 3}}},
          {"label", Feature::Kind::tensor, {DType::f32, {kClasses}}}};
}

/// Images whose values are all the sample's number, and its label.
struct MicroBatch {
  explicit MicroBatch(std::vector<std::int64_t> of) : ids(std::move(of)) {
    const std::int64_t n = std::ssize(ids);
    tensors.push_back({"image", Tensor({DType::f32, {n, kSide, kSide, 3}})});
    tensors.push_back({"label", Tensor({DType::f32, {n, kClasses}})});
    for (std::int64_t i = 0; i < n; ++i) {
      std::fill_n(image(i), kPixels, static_cast<float>(i));
      std::fill_n(label(i), kClasses, 0.0F);
      label(i)[i % kClasses] = 1;
    }
  }
  float* image(std::int64_t i) { return tensors[0].tensor.as<float>().data() + i * kPixels; }
  float* label(std::int64_t i) { return tensors[1].tensor.as<float>().data() + i * kClasses; }
  MicroBatch& mixed(const MixOptions& options, std::uint64_t epoch = 0, std::uint64_t seed = 1) {
    std::vector<float> scratch;
    Mixer(options, seed, features(), std::ssize(ids)).mix_micro_batch(tensors, ids, epoch, scratch);
    return *this;
  }
  std::vector<std::int64_t> ids;
  std::vector<NamedTensor> tensors;
};

std::vector<std::int64_t> numbers(std::int64_t n, std::int64_t first = 0) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) ids[static_cast<std::size_t>(i)] = first + i;
  return ids;
}

std::string refusal(const std::vector<Feature>& of, std::int64_t micro_batch_samples) {
  try {
    const Mixer mixer({.mixup = 1}, 1, of, micro_batch_samples);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "";
}

}  // namespace

TEST(ExactMath, IsThatOfTheMachineToTheLastDigits) {
  RandomStream random(3, 1);
  for (int i = 0; i < 10'000; ++i) {
    const double x = std::ldexp(static_cast<double>(random.unit()) + 0.1, static_cast<int>(random.below(200)) - 100);
    EXPECT_NEAR(exact_log(x), std::log(x), 1e-14 * std::fabs(std::log(x)) + 1e-15);
    const double y = static_cast<double>(random.between(-690, 690));
    EXPECT_NEAR(exact_exp(y) / std::exp(y), 1, 1e-13) << y;
  }
  EXPECT_EQ(exact_log(1), 0);
  EXPECT_EQ(exact_exp(0), 1);
  EXPECT_EQ(exact_exp(-1000), 0);
}

// Mean 1/2 and variance 1 / (4 (2 alpha + 1)); of alpha = 1, uniform.
TEST(SymmetricBeta, HasItsMoments) {
  for (const double alpha : {0.05, 0.2, 1.0, 4.0}) {
    double sum = 0, squares = 0;
    constexpr int kDraws = 40'000;
    for (std::uint64_t id = 0; id < kDraws; ++id) {
      RandomStream random(5, id);
      const double value = symmetric_beta(alpha, random);
      EXPECT_GE(value, 0);
      EXPECT_LE(value, 1);
      sum += value;
      squares += (value - 0.5) * (value - 0.5);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.011) << alpha;
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * alpha + 1)), 0.004) << alpha;
  }
}

TEST(Mixer, MixupMixesPixelsAndLabelsAlike) {
  MicroBatch micro_batch(numbers(5));
  micro_batch.mixed({.mixup = 1});
  int mixed = 0;
  for (std::int64_t i = 0; i < 5; ++i) {
    const std::int64_t partner = 4 - i;
    const float keeps = i == partner ? 1 : micro_batch.label(i)[i % kClasses];
    if (i % kClasses == partner % kClasses && i != partner) continue;  // of one class: its label stays
    mixed += static_cast<int>(keeps < 1);
    EXPECT_NEAR(micro_batch.label(i)[partner % kClasses], i == partner ? 1 : 1 - keeps, 1e-6);
    for (std::int64_t p = 0; p < kPixels; ++p) {
      ASSERT_NEAR(micro_batch.image(i)[p], keeps * static_cast<float>(i) + (1 - keeps) * static_cast<float>(partner),
                  1e-5);
    }
  }
  EXPECT_GE(mixed, 2);
}

TEST(Mixer, CutmixTakesARectangleAndItsShareOfTheLabel) {
  int cut = 0;
  for (std::int64_t first = 0; first < 200; first += 2) {
    MicroBatch micro_batch(numbers(2, first));
    micro_batch.mixed({.cutmix = 1});
    std::int64_t top = kSide, bottom = -1, left = kSide, right = -1, foreign = 0;
    for (std::int64_t y = 0; y < kSide; ++y) {
      for (std::int64_t x = 0; x < kSide; ++x) {
        const float value = micro_batch.image(0)[(y * kSide + x) * 3];
        ASSERT_TRUE(value == 0 || value == 1);
        if (value == 0) continue;
        top = std::min(top, y), bottom = std::max(bottom, y), left = std::min(left, x), right = std::max(right, x);
        ++foreign;
      }
    }
    EXPECT_EQ(foreign, foreign > 0 ? (bottom - top + 1) * (right - left + 1) : 0);
    EXPECT_EQ(micro_batch.label(0)[0], 1 - static_cast<float>(foreign) / (kSide * kSide));
    EXPECT_NEAR(micro_batch.label(0)[1], 1 - micro_batch.label(0)[0], 1e-6);
    cut += static_cast<int>(foreign > 0);
  }
  EXPECT_GT(cut, 70);  // of 100; the others' rectangles are smaller than a pixel
}

TEST(Mixer, DrawsDependOnSeedSampleAndEpochOnly) {
  const MixOptions options{.mixup = 0.4, .cutmix = 1};
  const auto image = [&](const std::vector<std::int64_t>& ids, std::uint64_t epoch, std::uint64_t seed) {
    MicroBatch micro_batch(ids);
    micro_batch.mixed(options, epoch, seed);
    return std::vector<float>(micro_batch.image(0), micro_batch.image(0) + kPixels);
  };
  int differ = 0;
  for (std::int64_t first = 0; first < 40; first += 2) {
    const auto ids = numbers(2, first);
    EXPECT_EQ(image(ids, 0, 1), image(ids, 0, 1));
    EXPECT_EQ(image(ids, 0, 1), image({first, 999}, 0, 1)) << "another partner, with the same values";
    differ += static_cast<int>(image(ids, 0, 1) != image(ids, 1, 1)) +
              static_cast<int>(image(ids, 0, 1) != image(ids, 0, 2)) +
              static_cast<int>(image(ids, 0, 1) != image({first + 1, 999}, 0, 1));
  }
  EXPECT_GT(differ, 50);  // of 60
}

TEST(Mixer, LeavesSamplesAloneAsOftenAsAsked) {
  int mixed = 0;
  for (std::int64_t first = 0; first < 4000; first += 2) {
    MicroBatch micro_batch(numbers(2, first));
    micro_batch.mixed({.mixup = 1, .probability = 0.25});
    mixed += static_cast<int>(micro_batch.label(0)[0] < 1);
  }
  EXPECT_NEAR(mixed, 500, 80);  // four standard deviations
}

TEST(Mixer, SaysWhatItCannotMix) {
  EXPECT_EQ(refusal(features(), 2), "");
  EXPECT_EQ(refusal(features(), 1),
            "job.data.mix: expected micro-batches of 2 samples and more, found 1: a sample is mixed with another of "
            "its micro-batch; "
            "set fewer micro-batches, or a larger batch_size");
  auto two = features();
  two.push_back({"other", Feature::Kind::image, {DType::f32, {kSide, kSide, 3}}});
  EXPECT_EQ(refusal(two, 2), "job.data.mix: expected samples of one image and a class, found image, label, other");
}

// Whichever thread makes a batch, ahead of time or not.
TEST(Mixer, BatchesDoNotDependOnTheLoader) {
  const auto set = with_one_hot_labels(make_digits(100));
  const auto batches = [&](int threads, int depth) {
    LoaderOptions options;
    options.batch = 24, options.micro_batches = 6, options.seed = 3, options.last_step = 8;
    options.threads = threads, options.depth = depth;
    options.mix = {.mixup = 0.5, .cutmix = 0.5};
    Loader loader(
        *set,
        Pipeline(set->info().features, {.steps = {}, .mean = {}, .stddev = {}, .seed = 3}, built_in_augmentations()),
        options);
    loader.assign(0, {0, 1, 2, 3, 4, 5});
    std::vector<float> values;
    for (std::uint64_t step = 0; step < options.last_step; ++step) {
      for (int micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
        for (const NamedTensor& part : loader.get(step, micro_batch).tensors) {
          const auto floats = part.tensor.as<float>();
          values.insert(values.end(), floats.begin(), floats.end());
        }
        loader.release(step, micro_batch);
      }
    }
    return values;
  };
  const auto expected = batches(1, 1);
  EXPECT_EQ(batches(3, 7), expected);
  EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [](float value) { return value > 0.3F && value < 0.7F; }));
}

}  // namespace lockstep::data
