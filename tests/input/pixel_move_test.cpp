// Steps that only move pixels: trace_back() finds each pixel where apply() took it from; and what a pipeline reports to
// code that stores its samples on a GPU.
#include <gtest/gtest.h>

#include "data/augment.hpp"
#include "data/input/gather_kernels.hpp"
#include "lockstep/error.hpp"

namespace lockstep::input {

namespace {

using data::Pipeline;
using data::PipelineScratch;
using Options = std::vector<AugmentOptions>;

AugmentOptions named_step(const std::string& name, std::map<std::string, Attribute> attributes = {}) {
  return {name, Attributes(std::move(attributes)), {}};
}

Pipeline pipeline(const Options& steps, const Shape& image,
                  const AugmentRegistry& registry = built_in_augmentations()) {
  return {{{"image", Feature::Kind::image, {DType::u8, image}}, {"label", Feature::Kind::label, {DType::i32, {}}}},
          {.steps = steps, .mean = {}, .stddev = {}, .seed = 5},
          registry};
}

Tensor noise(const Shape& shape, std::uint64_t id) {
  Tensor image({DType::u8, shape});
  RandomStream random(9, id);
  for (std::uint8_t& value : image.as<std::uint8_t>()) value = static_cast<std::uint8_t>(1 + random.below(255));
  return image;
}

/// The image after the drawn moves, each pixel traced back.
std::vector<int> traced(const Tensor& stored, const std::vector<PixelMove>& moves, const Shape& to) {
  const std::int64_t width = stored.shape()[1], channels = stored.shape()[2];
  std::vector<int> out;
  for (std::int64_t i = 0; i < to[0] * to[1]; ++i) {
    std::int64_t y = i / to[1], x = i % to[1];
    bool there = true;
    for (auto move = moves.rbegin(); move != moves.rend() && there; ++move) there = trace_back(*move, y, x);
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto at = static_cast<std::size_t>((y * width + x) * channels + c);
      out.push_back(there ? stored.as<std::uint8_t>()[at] : 0);
    }
  }
  return out;
}

/// Draws, stores and traces samples, and compares them with applying the steps at once.
void expect_same(const Options& steps, const Shape& from) {
  const Pipeline whole = pipeline(steps, from);
  ASSERT_EQ(whole.not_storable(), "");
  Tensor stored(whole.stored()[0].spec), kept({DType::i32, {}});
  std::vector<PixelMove> moves(static_cast<std::size_t>(whole.drawn_steps()));
  PipelineScratch scratch;
  for (std::uint64_t sample = 0; sample < 60; ++sample) {
    const auto id = static_cast<std::int64_t>(sample);
    Tensor label({DType::i32, {}});
    label.as<std::int32_t>()[0] = static_cast<std::int32_t>(id);
    Sample both;
    both.push_back({"image", noise(from, sample)});
    both.push_back({"label", std::move(label)});
    const std::vector<std::byte*> outputs = {stored.bytes(), kept.bytes()};
    whole.store(both, id, scratch, outputs);
    std::int64_t drawn_id = -1;
    std::vector<std::byte*> parts = {reinterpret_cast<std::byte*>(&drawn_id)};
    if (!moves.empty()) parts.push_back(reinterpret_cast<std::byte*>(moves.data()));
    ASSERT_EQ(whole.drawn().size(), parts.size());
    whole.draw(id, 3, parts);
    whole.augment(both[0].tensor, 0, id, 3, scratch);
    const auto pixels = scratch.image.pixels();
    EXPECT_EQ(traced(stored, moves, whole.outputs()[0].spec.shape), std::vector<int>(pixels.begin(), pixels.end()));
    EXPECT_EQ(drawn_id, id);
    EXPECT_EQ(kept.as<std::int32_t>()[0], id);
  }
}

/// A user's own step: leaves the image as it is, except for its first row.
class FirstRow final : public MoveStep {
 public:
  [[nodiscard]] PixelMove draw(ImageSize input, RandomStream& random) const override {
    PixelMove move{static_cast<std::int32_t>(input.height), static_cast<std::int32_t>(input.width), 1, 0, 0, {}};
    move.down = static_cast<std::int32_t>(random.below(2));
    move.hole = {0, 0, 1, move.width};
    return move;
  }
};

}  // namespace

TEST(PixelMove, IsWhatEachStepDoes) {
  for (const Shape& image : {Shape{8, 8, 3}, Shape{5, 7, 1}, Shape{1, 9, 2}, Shape{6, 1, 4}}) {
    expect_same({}, image);
    for (const Options& steps :
         {Options{named_step("flip")}, Options{named_step("crop")},
          Options{named_step("crop", {{"padding", std::int64_t{12}}})},
          Options{named_step("cutout", {{"size", std::int64_t{3}}})},
          Options{named_step("cutout", {{"size", std::int64_t{40}}})},
          Options{named_step("center_crop", {{"size", std::vector<std::int64_t>{4, 11}}})},
          Options{named_step("flip"), named_step("center_crop", {{"size", std::vector<std::int64_t>{11, 4}}})}}) {
      expect_same(steps, image);
    }
  }
}

TEST(PixelMove, IsTracedThroughSeveralStepsBackwards) {
  const auto cutout = named_step("cutout", {{"size", std::int64_t{2}}});
  const auto center = named_step("center_crop", {{"size", std::vector<std::int64_t>{7, 6}}});
  expect_same({named_step("flip"), named_step("crop", {{"padding", std::int64_t{2}}}), cutout}, {9, 8, 3});
  expect_same({cutout, named_step("crop"), named_step("flip"), cutout, center, named_step("flip")}, {9, 8, 1});
}

TEST(PixelMove, StepsThatDrawNothingAreDoneWhenASampleIsStored) {
  const Options steps = {named_step("resize", {{"size", std::vector<std::int64_t>{6, 5}}}), named_step("flip")};
  expect_same(steps, {12, 9, 3});
  const Pipeline whole = pipeline(steps, {-1, -1, 3});  // images of any size
  EXPECT_EQ(whole.not_storable(), "");
  EXPECT_EQ(whole.stored()[0].spec, (TensorSpec{DType::u8, {6, 5, 3}}));
  EXPECT_EQ(whole.drawn_steps(), 1);
}

TEST(PixelMove, AStepOfOnesOwnHasTheBaseClassApplyIt) {
  AugmentRegistry registry = built_in_augmentations();
  AugmentDef def;
  def.name = "first_row";
  def.make = [](const Attributes&) { return std::make_unique<FirstRow>(); };
  registry.add(def);
  const Pipeline whole = pipeline({named_step("first_row")}, {2, 3, 1}, registry);
  EXPECT_EQ(whole.not_storable(), "");
  Tensor image({DType::u8, {2, 3, 1}});
  for (int i = 0; i < 6; ++i) image.as<std::uint8_t>()[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i + 1);
  PipelineScratch scratch;
  for (std::int64_t id = 0; id < 20; ++id) {
    whole.augment(image, 0, id, 0, scratch);
    const std::vector<int> found(scratch.image.pixels().begin(), scratch.image.pixels().end());
    EXPECT_TRUE(found == (std::vector<int>{0, 0, 0, 6, 5, 4}) || found == std::vector<int>(6, 0));
  }
}

TEST(PixelMove, APipelineSaysWhyItsSamplesCannotBeKeptOnAGpu) {
  const Shape image{8, 8, 3};
  EXPECT_EQ(pipeline({named_step("flip"), named_step("rotate", {{"degrees", 5.0}})}, image).not_storable(),
            "`rotate` computes pixels");
  EXPECT_EQ(pipeline({named_step("color_jitter")}, image).not_storable(), "`color_jitter` computes pixels");
  EXPECT_EQ(pipeline({named_step("resized_crop", {{"size", std::int64_t{4}}})}, image).not_storable(),
            "`resized_crop` computes pixels");
  // After a random step, each epoch would need a different one.
  EXPECT_EQ(pipeline({named_step("flip"), named_step("resize", {{"size", std::vector<std::int64_t>{4, 4}}})}, image)
                .not_storable(),
            "`resize` computes pixels");
  EXPECT_EQ(pipeline({named_step("flip"), named_step("center_crop", {{"size", std::int64_t{4}}})}, {-1, -1, 3})
                .not_storable(),
            "the images of 'image' differ in size");
}

}  // namespace lockstep::input
