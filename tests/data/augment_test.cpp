#include "data/augment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

using Bytes = std::vector<int>;  // not of bytes: g++ 12 emits a false warning for their comparison

std::unique_ptr<AugmentStep> make(const std::string& name, std::map<std::string, Attribute> attributes = {}) {
  const AugmentRegistry registry = built_in_augmentations();
  const AugmentDef* def = registry.find(name);
  return def->make(complete(def->attributes, Attributes(std::move(attributes)), name));
}

/// The result of the step for an image; the step may change the size.
Bytes apply(const AugmentStep& step, const Bytes& pixels, std::int64_t height, std::int64_t width,
            std::int64_t channels = 1, std::uint64_t id = 0) {
  Image image;
  const std::vector<std::uint8_t> bytes(pixels.begin(), pixels.end());
  image.assign({bytes.data(), height, width, channels});
  RandomStream random(1, id);
  step.apply(image, random);
  const auto size = step.output_size({height, width});
  EXPECT_EQ(image.height(), size.height);
  EXPECT_EQ(image.width(), size.width);
  EXPECT_EQ(image.channels(), channels);
  return {image.pixels().begin(), image.pixels().end()};
}

const Bytes kThreeByThree{1, 2, 3, 4, 5, 6, 7, 8, 9};

std::string message_of(const std::vector<AugmentOptions>& steps, Shape image) {
  try {
    const Pipeline pipeline({{"image", Feature::Kind::image, {DType::u8, std::move(image)}}},
                            {.steps = steps, .mean = {}, .stddev = {}, .seed = 0}, built_in_augmentations());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "";
}

}  // namespace

TEST(Augment, FlipMirrorsHalfOfTheImages) {
  EXPECT_EQ(apply(*make("flip", {{"probability", 1.0}}), kThreeByThree, 3, 3), (Bytes{3, 2, 1, 6, 5, 4, 9, 8, 7}));
  EXPECT_EQ(apply(*make("flip", {{"probability", 0.0}}), kThreeByThree, 3, 3), kThreeByThree);
  EXPECT_EQ(apply(*make("flip", {{"probability", 1.0}}), {1, 2, 3, 4, 5, 6}, 1, 2, 3), (Bytes{4, 5, 6, 1, 2, 3}));
  int flipped = 0;
  for (std::uint64_t id = 0; id < 2000; ++id) {
    flipped += static_cast<int>(apply(*make("flip"), {1, 2}, 1, 2, 1, id)[0] == 2);
  }
  EXPECT_NEAR(flipped, 1000, 90);  // four standard deviations
}

TEST(Augment, CropShiftsByEveryOffsetEquallyOften) {
  const auto step = make("crop", {{"padding", std::int64_t{1}}});
  std::map<Bytes, int> seen;
  for (std::uint64_t id = 0; id < 1800; ++id) ++seen[apply(*step, kThreeByThree, 3, 3, 1, id)];
  EXPECT_EQ(seen.size(), 9U);
  EXPECT_TRUE(seen.contains(kThreeByThree));
  EXPECT_TRUE(seen.contains({0, 0, 0, 0, 1, 2, 0, 4, 5}));
  EXPECT_TRUE(seen.contains({5, 6, 0, 8, 9, 0, 0, 0, 0}));
  EXPECT_TRUE(seen.contains({0, 0, 0, 1, 2, 3, 4, 5, 6}));
  for (const auto& [image, count] : seen) EXPECT_NEAR(count, 200, 60);
}

TEST(Augment, CropWithMorePaddingThanImageIsSafe) {
  const auto step = make("crop", {{"padding", std::int64_t{9}}});
  bool all_black = false;
  for (std::uint64_t id = 0; id < 200; ++id) {
    all_black = all_black || apply(*step, kThreeByThree, 3, 3, 1, id) == Bytes(9, 0);
  }
  EXPECT_TRUE(all_black);
}

TEST(Augment, CenterCropTakesTheMiddleOrPads) {
  const auto crop = [](std::int64_t size) { return make("center_crop", {{"size", size}}); };
  EXPECT_EQ(apply(*crop(1), kThreeByThree, 3, 3), (Bytes{5}));
  EXPECT_EQ(apply(*crop(3), {1, 2, 3}, 1, 3), (Bytes{0, 0, 0, 1, 2, 3, 0, 0, 0}));
}

TEST(Augment, ResizeAveragesWhenItShrinks) {
  const auto step = make("resize", {{"size", std::vector<std::int64_t>{1, 2}}});
  // Each output is a triangle filter over its half and beyond: weights 3, 3, 1 (of 7) at the edge.
  EXPECT_EQ(apply(*step, {10, 10, 90, 90}, 1, 4), (Bytes{21, 79}));
  EXPECT_EQ(apply(*step, {50, 50, 50, 50, 50, 50, 50, 50}, 2, 4), (Bytes{50, 50}));
}

TEST(Augment, ResizeInterpolatesWhenItGrows) {
  const auto step = make("resize", {{"size", std::vector<std::int64_t>{1, 4}}});
  EXPECT_EQ(apply(*step, {0, 100}, 1, 2), (Bytes{0, 25, 75, 100}));
}

TEST(Augment, ResizeByOneNumberKeepsProportions) {
  const auto step = make("resize", {{"size", std::int64_t{2}}});
  EXPECT_EQ(step->output_size({4, 6}), (ImageSize{2, 3}));
  EXPECT_EQ(step->output_size({-1, -1}), (ImageSize{-1, -1}));
  EXPECT_EQ(apply(*step, Bytes(24, 7), 4, 6), Bytes(6, 7));
}

TEST(Augment, ResizedCropKeepsConstantsAndVaries) {
  const auto step = make("resized_crop", {{"size", std::int64_t{4}}});
  EXPECT_EQ(apply(*step, Bytes(300, 9), 10, 10, 3), Bytes(48, 9));
  Bytes ramp(100);
  for (std::size_t i = 0; i < 100; ++i) ramp[i] = static_cast<int>(10 * (i % 10));
  double mean = 0;
  std::map<Bytes, int> seen;
  for (std::uint64_t id = 0; id < 500; ++id) {
    const Bytes out = apply(*step, ramp, 10, 10, 1, id);
    ++seen[out];
    for (const auto value : out) mean += value / 8000.0;
  }
  EXPECT_GT(seen.size(), 30U);
  EXPECT_NEAR(mean, 45, 2);  // left and right are equally likely
}

TEST(Augment, RotateByNothingIsTheImageAndAngleIsSymmetric) {
  EXPECT_EQ(apply(*make("rotate", {{"degrees", 0.0}}), kThreeByThree, 3, 3), kThreeByThree);
  Bytes line(81, 0);  // horizontal through the middle
  for (std::size_t x = 0; x < 9; ++x) line[4 * 9 + x] = 200;
  const auto step = make("rotate", {{"degrees", 40.0}});
  double up = 0, down = 0;
  for (std::uint64_t id = 0; id < 1000; ++id) {
    const Bytes out = apply(*step, line, 9, 9, 1, id);
    EXPECT_NEAR(out[40], 200, 1);  // the middle stays
    for (std::size_t y = 0; y < 4; ++y) up += out[y * 9 + 7], down += out[(8 - y) * 9 + 7];
  }
  EXPECT_NEAR(up / down, 1, 0.1);
  EXPECT_GT(up, 0);
}

TEST(Augment, RotateByAHalfTurnOrQuarterTurn) {
  // The angle is random.between(-d, d); for an id whose draw is near the end it is nearly a half turn.
  const auto step = make("rotate", {{"degrees", 180.0}});
  bool found = false;
  for (std::uint64_t id = 0; id < 4000 && !found; ++id) {
    RandomStream random(1, id);
    if (std::fabs(random.between(-180, 180)) < 179.9F) continue;
    found = true;
    const Bytes out = apply(*step, kThreeByThree, 3, 3, 1, id);
    for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(out[i], kThreeByThree[8 - i], 1);
  }
  EXPECT_TRUE(found);
}

TEST(Augment, ColorJitterMultipliesBrightness) {
  const auto step = make("color_jitter", {{"brightness", 0.5}});
  double sum = 0;
  for (std::uint64_t id = 0; id < 1000; ++id) {
    RandomStream random(1, id);
    const float factor = random.between(0.5F, 1.5F);
    const Bytes out = apply(*step, {100, 60, 250}, 1, 1, 3, id);
    EXPECT_NEAR(out[0], 100 * factor, 0.51);
    EXPECT_NEAR(out[1], 60 * factor, 0.51);
    EXPECT_NEAR(out[2], std::fmin(255, 250 * factor), 0.51);
    sum += out[0];
  }
  EXPECT_NEAR(sum / 1000, 100, 4);
}

TEST(Augment, ColorJitterKeepsGrayWhereItShould) {
  const auto contrast = make("color_jitter", {{"contrast", 1.0}}),
             saturation = make("color_jitter", {{"saturation", 1.0}});
  bool spread = false;
  for (std::uint64_t id = 0; id < 50; ++id) {
    const Bytes out = apply(*contrast, {80, 120}, 1, 2, 1, id);
    EXPECT_NEAR((out[0] + out[1]) / 2.0, 100, 1);  // the mean is kept
    spread = spread || out[1] - out[0] > 60;
    EXPECT_EQ(apply(*saturation, {77, 77, 77}, 1, 1, 3, id), (Bytes{77, 77, 77}));
  }
  EXPECT_TRUE(spread);
}

TEST(Augment, CutoutBlackensASquare) {
  const auto step = make("cutout", {{"size", std::int64_t{3}}});
  std::vector<int> black(25);
  for (std::uint64_t id = 0; id < 2500; ++id) {
    const Bytes out = apply(*step, Bytes(25, 9), 5, 5, 1, id);
    for (std::size_t i = 0; i < 25; ++i) black[i] += static_cast<int>(out[i] == 0);
  }
  EXPECT_NEAR(black[12], 900, 100);  // the middle: 9 of 25 centers reach it
  EXPECT_NEAR(black[0], 400, 80);    // a corner: 4 of 25
}

TEST(Augment, GrayTakesTheColorsOut) {
  const auto always = make("gray", {{"probability", 1.0}});
  EXPECT_EQ(apply(*always, {100, 60, 250, 0, 0, 0}, 1, 2, 3), (Bytes{94, 94, 94, 0, 0, 0}));  // ITU-R BT.601
  EXPECT_EQ(apply(*always, {7, 9}, 1, 2), (Bytes{7, 9}));
  int gray = 0;
  for (std::uint64_t id = 0; id < 2000; ++id) {
    gray += static_cast<int>(apply(*make("gray"), {100, 60, 250}, 1, 1, 3, id)[0] == 94);
  }
  EXPECT_NEAR(gray, 400, 72);  // a fifth; four standard deviations
}

// The weights of a Gaussian of the width that is drawn, in both directions; what is even stays.
TEST(Augment, BlurIsAGaussian) {
  const auto step = make("blur", {{"probability", 1.0}, {"sigma", 1.5}});
  EXPECT_EQ(apply(*step, Bytes(75, 130), 5, 5, 3), Bytes(75, 130));
  EXPECT_EQ(apply(*make("blur", {{"probability", 0.0}}), kThreeByThree, 3, 3), kThreeByThree);
  constexpr int kSide = 15;
  for (std::uint64_t id = 0; id < 40; ++id) {
    RandomStream random(1, id);
    (void)random.unit();
    const auto sigma = static_cast<double>(random.between(0.1F, 1.5F));
    Bytes dot(kSide * kSide);
    dot[kSide * 7 + 7] = 255;
    const Bytes out = apply(*step, dot, kSide, kSide, 1, id);
    double sum = 0;
    for (int i = -7; i <= 7; ++i) sum += std::exp(-i * i / (2 * sigma * sigma));
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const double squares = (y - 7) * (y - 7) + (x - 7) * (x - 7);
        const double expected = 255 * std::exp(-squares / (2 * sigma * sigma)) / (sum * sum);
        EXPECT_NEAR(out[static_cast<std::size_t>(y * kSide + x)], expected, 1.6) << sigma;
      }
    }
  }
  EXPECT_EQ(apply(*step, {0, 90, 0}, 3, 1), apply(*step, {0, 90, 0}, 1, 3)) << "of one column as of one row";
}

// Of each operation what is known without carrying it out: a ramp of 256 values shows which one it was.
TEST(Augment, RandAugmentDrawsItsOperations) {
  Bytes ramp;
  for (int i = 0; i < 256; ++i) ramp.push_back(i);
  const auto one = make("rand_augment", {{"number", std::int64_t{1}}, {"magnitude", 15.0}});
  int same = 0, solarized = 0, posterized = 0, brighter = 0;
  for (std::uint64_t id = 0; id < 2600; ++id) {
    const Bytes out = apply(*one, ramp, 1, 256, 1, id);
    same += static_cast<int>(out == ramp);
    solarized += static_cast<int>(out[200] == 55 && out[100] == 100);
    posterized += static_cast<int>(out[203] == 200 && out[100] == 100);
    brighter += static_cast<int>(out[100] == 145 && out[0] == 0);
  }
  // Two hundred each. What leaves such a ramp as it is: none, saturation, both curves, and shear of one row.
  EXPECT_NEAR(solarized, 200, 55);
  EXPECT_NEAR(posterized, 200, 55);
  EXPECT_NEAR(brighter, 100, 40);
  EXPECT_GE(same, 600);
  EXPECT_EQ(apply(*make("rand_augment", {{"magnitude", 0.0}}), Bytes(75, 130), 5, 5, 3), Bytes(75, 130));
}

TEST(Augment, RandAugmentStretchesAndEqualizes) {
  const auto one = make("rand_augment", {{"number", std::int64_t{1}}, {"magnitude", 0.0}});
  Bytes dark;
  for (int i = 0; i < 1024; ++i) dark.push_back(50 + i % 64);
  bool stretched = false, equalized = false;
  for (std::uint64_t id = 0; id < 200; ++id) {
    const Bytes out = apply(*one, dark, 32, 32, 1, id);
    stretched = stretched || (out[0] == 0 && out[63] == 255 && out[21] == 85);   // 21 / 63 of the way
    equalized = equalized || (out[0] == 0 && out[63] == 255 && out[32] == 171);  // by the count of darker pixels
  }
  EXPECT_TRUE(stretched);
  EXPECT_TRUE(equalized);
}

TEST(Augment, EraseBlackensARectangleInside) {
  const auto step = make("erase", {{"probability", 1.0}, {"max_area", 0.25}, {"max_ratio", 2.0}});
  double area = 0;
  for (std::uint64_t id = 0; id < 500; ++id) {
    const Bytes out = apply(*step, Bytes(400, 9), 20, 20, 1, id);
    int black = 0, top = 20, bottom = -1, left = 20, right = -1;
    for (int i = 0; i < 400; ++i) {
      if (out[static_cast<std::size_t>(i)] != 0) continue;
      ++black, top = std::min(top, i / 20), bottom = std::max(bottom, i / 20);
      left = std::min(left, i % 20), right = std::max(right, i % 20);
    }
    EXPECT_EQ(black, (bottom - top + 1) * (right - left + 1));
    EXPECT_GE(black, 4);
    EXPECT_LE(black, 115);  // a quarter, and what rounding adds
    area += black;
  }
  EXPECT_NEAR(area / 500, 54, 6);  // the middle of 0.02 and 0.25
}

TEST(Augment, PipelineNormalisesAndKeepsOrder) {
  const Pipeline pipeline(
      {{"image", Feature::Kind::image, {DType::u8, {1, 2, 2}}}, {"label", Feature::Kind::label, {DType::i32, {}}}},
      {.steps = {}, .mean = {0.5, 0}, .stddev = {0.25, 1}, .seed = 0}, built_in_augmentations());
  Sample sample(2);
  sample[0] = {"image", Tensor({DType::u8, {1, 2, 2}})};
  sample[1] = {"label", Tensor({DType::i32, {}})};
  const Bytes pixels{255, 0, 0, 51};
  std::copy(pixels.begin(), pixels.end(), sample[0].tensor.as<std::uint8_t>().begin());
  sample[1].tensor.as<std::int32_t>()[0] = 42;
  float image[4];
  std::int32_t label = 0;
  PipelineScratch scratch;
  std::byte* const outputs[] = {reinterpret_cast<std::byte*>(image), reinterpret_cast<std::byte*>(&label)};
  pipeline.run(sample, 0, 0, scratch, outputs);
  EXPECT_FLOAT_EQ(image[0], 2);
  EXPECT_FLOAT_EQ(image[1], 0);
  EXPECT_FLOAT_EQ(image[2], -2);
  EXPECT_NEAR(image[3], 0.2F, 1e-6);
  EXPECT_EQ(label, 42);
}

TEST(Augment, DrawsDependOnSeedStepEpochSampleAndImageOnly) {
  Tensor image({DType::u8, {16, 16, 1}});
  for (int i = 0; i < 256; ++i) image.as<std::uint8_t>()[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
  const auto crop = [&](std::uint64_t seed, std::size_t before, std::size_t index, std::int64_t id,
                        std::uint64_t epoch) {
    std::vector<AugmentOptions> steps(before, {"flip", Attributes({{"probability", 0.0}}), {}});
    steps.push_back({"crop", Attributes({{"padding", std::int64_t{8}}}), {}});
    const Pipeline pipeline({{"image", Feature::Kind::image, image.spec()}},
                            {.steps = steps, .mean = {}, .stddev = {}, .seed = seed}, built_in_augmentations());
    PipelineScratch scratch;
    pipeline.augment(image, index, id, epoch, scratch);
    return Bytes(scratch.image.pixels().begin(), scratch.image.pixels().end());
  };
  int differ = 0;
  for (std::int64_t id = 0; id < 40; id += 2) {
    const Bytes base = crop(1, 0, 0, id, 0);
    EXPECT_EQ(crop(1, 0, 0, id, 0), base);
    differ += static_cast<int>(crop(2, 0, 0, id, 0) != base) + static_cast<int>(crop(1, 1, 0, id, 0) != base) +
              static_cast<int>(crop(1, 0, 1, id, 0) != base) + static_cast<int>(crop(1, 0, 0, id + 1, 0) != base) +
              static_cast<int>(crop(1, 0, 0, id, 1) != base);
  }
  EXPECT_GT(differ, 90);  // of 100
}

TEST(Augment, MistakesAreNamed) {
  EXPECT_EQ(message_of({{"flop", {}, {}}}, {4, 4, 3}),
            "expected an augmentation, one of blur, center_crop, color_jitter, crop, cutout, erase, flip, gray, "
            "rand_augment, resize, resized_crop, rotate; found 'flop'");
  EXPECT_EQ(message_of({{"flip", {}, {}}}, {-1, -1, 3}),
            "job.data.prepare: the images of 'image' differ in size, but a network needs one size; add `resize` with a "
            "height and a width, or `center_crop`");
  EXPECT_EQ(message_of({{"resize", Attributes({{"size", std::vector<std::int64_t>{1, 2, 3}}}), {}}}, {4, 4, 3}),
            "augmentation 'resize': size: expected one number, or height and width; found 3 numbers");
}

namespace {

/// A user's own step.
class Invert final : public AugmentStep {
 public:
  void apply(Image& image, RandomStream& /*random*/) const override {
    for (std::uint8_t& value : image.pixels()) value = static_cast<std::uint8_t>(255 - value);
  }
};

}  // namespace

TEST(Augment, AProgramCanAddItsOwnStep) {
  AugmentRegistry registry = built_in_augmentations();
  AugmentDef def;
  def.name = "invert";
  def.make = [](const Attributes&) { return std::make_unique<Invert>(); };
  registry.add(def);
  EXPECT_THROW(registry.add(def), Error);
  const Pipeline pipeline({{"image", Feature::Kind::image, {DType::u8, {1, 1, 1}}}},
                          {.steps = {{"invert", {}, {}}}, .mean = {}, .stddev = {}, .seed = 0}, registry);
  Tensor image({DType::u8, {1, 1, 1}});
  image.as<std::uint8_t>()[0] = 5;
  PipelineScratch scratch;
  pipeline.augment(image, 0, 0, 0, scratch);
  EXPECT_EQ(scratch.image.pixels()[0], 250);
}

}  // namespace lockstep::data
