// erase: blackens a rectangle inside some images (Zhong and others, "Random Erasing Data Augmentation", AAAI 2020), of
// random area and aspect ratio; after ten tries that do not fit, nothing.
#include <cmath>

#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

class Erase final : public MoveStep {
 public:
  Erase(float probability, float largest, float ratio) : probability_(probability), largest_(largest), ratio_(ratio) {}

  PixelMove draw(ImageSize input, RandomStream& random) const override {
    PixelMove move = standing(input);
    if (random.unit() >= probability_) return move;
    constexpr int kMostTries = 10;
    for (int i = 0; i < kMostTries; ++i) {
      const float area = random.between(std::fmin(kSmallest, largest_), largest_) * (input.height * input.width);
      const float long_to_short = random.between(1, ratio_);
      const float ratio = random.below(2) == 0 ? long_to_short : 1.0F / long_to_short;
      const std::int32_t h = std::floor(std::sqrt(area * ratio) + 0.5F);
      const std::int32_t w = std::floor(std::sqrt(area / ratio) + 0.5F);
      if (h < 1 || w < 1 || h > input.height || w > input.width) continue;
      const std::int32_t top = random.below(input.height - h + 1);
      const std::int32_t left = random.below(input.width - w + 1);
      move.hole = {top, left, top + h, left + w};
      return move;
    }
    return move;
  }

 private:
  static constexpr float kSmallest = 0.02F;
  float probability_, largest_, ratio_;
};

}  // namespace

AugmentDef make_erase() {
  AugmentDef def;
  def.name = "erase";
  def.doc = "blackens a random rectangle inside some images";
  def.attributes = {probability_attribute(0.5),
                    {.name = "max_area",
                     .kind = AttributeKind::number,
                     .doc = "largest fraction of the image; the smallest is 0.02",
                     .default_value = 0.33,
                     .minimum = 0,
                     .maximum = 1,
                     .above_minimum = true},
                    {.name = "max_ratio",
                     .kind = AttributeKind::number,
                     .doc = "of its sides",
                     .default_value = 3.3,
                     .minimum = 1,
                     .maximum = 100}};
  def.make = [](const Attributes& a) {
    return std::make_unique<Erase>(static_cast<float>(a.number("probability")),
                                   static_cast<float>(a.number("max_area")), static_cast<float>(a.number("max_ratio")));
  };
  return def;
}

}  // namespace lockstep::data
