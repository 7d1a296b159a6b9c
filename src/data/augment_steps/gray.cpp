// gray: all three channels become the pixel's luma, for some samples.
#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

class Gray final : public AugmentStep {
 public:
  explicit Gray(float probability) : probability_(probability) {}

  void apply(Image& image, RandomStream& random) const override {
    if (random.unit() >= probability_ || image.channels() != 3) return;
    for (std::size_t i = 0; i < image.pixels().size(); i += 3) {
      std::uint8_t* const pixel = &image.pixels()[i];
      pixel[0] = pixel[1] = pixel[2] = luma(pixel, 3);
    }
  }

 private:
  float probability_;
};

}  // namespace

AugmentDef make_gray() {
  AugmentDef def;
  def.name = "gray";
  def.doc = "turns some images gray";
  def.attributes = {probability_attribute(0.2)};
  def.shorthand = "probability";
  def.make = [](const Attributes& a) { return std::make_unique<Gray>(static_cast<float>(a.number("probability"))); };
  return def;
}

}  // namespace lockstep::data
