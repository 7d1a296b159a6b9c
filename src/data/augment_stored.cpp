// Pipeline, split for sets that are kept on a GPU: what is done to a sample once, and what is drawn for it each time.
#include <fmt/format.h>

#include <cstring>

#include "data/augment.hpp"

namespace lockstep::data {

namespace {

constexpr std::int64_t kWordsOfAMove = sizeof(PixelMove) / sizeof(std::int32_t);

bool is_image(const Feature& feature) {
  return feature.kind == Feature::Kind::image;
}

}  // namespace

Feature Pipeline::stored_as(const Feature& input) const {
  if (!is_image(input)) return input;
  ImageSize size{input.spec.shape.at(0), input.spec.shape.at(1)};
  for (std::size_t i = 0; i < fixed_steps_; ++i) size = steps_[i].step->output_size(size);
  return {input.name, input.kind, {DType::u8, {size.height, size.width, input.spec.shape.at(2)}}};
}

std::string Pipeline::not_storable() const {
  for (const Feature& feature : stored_) {
    if (feature.kind == Feature::Kind::mask) return "masks are moved by the host";
    if (feature.kind == Feature::Kind::columns) return "a table is normalised by the host";
    if (!is_image(feature)) continue;
    if (feature.spec.shape[0] <= 0 || feature.spec.shape[1] <= 0) {
      return fmt::format("the images of '{}' differ in size", feature.name);
    }
    for (std::size_t i = fixed_steps_; i < steps_.size(); ++i) {
      if (steps_[i].moves == nullptr) return fmt::format("`{}` computes pixels", steps_[i].name);
    }
  }
  return "";
}

void Pipeline::store(const Sample& sample, std::int64_t id, PipelineScratch& scratch,
                     std::span<std::byte* const> outputs) const {
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (!is_image(inputs_[i])) {
      copy(sample[i].tensor, i, id, outputs[i]);
      continue;
    }
    augment(sample[i].tensor, i, id, 0, fixed_steps_, scratch);
    require_shape(scratch.image, stored_[i], id);
    std::memcpy(outputs[i], scratch.image.pixels().data(), scratch.image.pixels().size());
  }
}

std::vector<Feature> Pipeline::drawn() const {
  std::vector<Feature> features = {{"id", Feature::Kind::tensor, {DType::i64, {}}}};
  for (const Feature& input : inputs_) {
    if (!is_image(input) || drawn_steps() == 0) continue;
    features.push_back({input.name, Feature::Kind::tensor, {DType::i32, {drawn_steps(), kWordsOfAMove}}});
  }
  return features;
}

void Pipeline::draw(std::int64_t id, std::uint64_t epoch, std::span<std::byte* const> outputs) const {
  std::memcpy(outputs[0], &id, sizeof(id));
  std::size_t at = 1;
  for (std::size_t index = 0; index < stored_.size() && at < outputs.size(); ++index) {
    if (!is_image(stored_[index])) continue;
    std::byte* output = outputs[at++];
    ImageSize size{stored_[index].spec.shape[0], stored_[index].spec.shape[1]};
    for (std::size_t i = fixed_steps_; i < steps_.size(); ++i) {
      RandomStream random = random_of(steps_[i], index, id, epoch);
      const PixelMove move = steps_[i].moves->draw(size, random);
      std::memcpy(output, &move, sizeof(move));
      output += sizeof(move);
      size = steps_[i].step->output_size(size);
    }
  }
}

}  // namespace lockstep::data
