// flip: left and right change places, with the given probability.
#include <algorithm>

#include "data/augment_steps.hpp"

namespace lockstep::data {

namespace {

void mirror(std::uint8_t* row, std::int64_t width, std::int64_t channels) {
  if (channels == 1) {
    std::reverse(row, row + width);
    return;
  }
  for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
    std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
  }
}

class Flip final : public AugmentStep {
 public:
  explicit Flip(float probability) : probability_(probability) {}
  void apply(Image& image, RandomStream& random) const override {
    if (!(random.unit() < probability_)) return;
    for (std::int64_t y = 0; y < image.height(); ++y) mirror(image.row(y), image.width(), image.channels());
  }

 private:
  float probability_;
};

}  // namespace

AugmentDef make_flip() {
  AugmentDef def;
  def.name = "flip";
  def.doc = "mirrors the image, left to right";
  def.attributes = {{.name = "probability",
                     .kind = AttributeKind::number,
                     .doc = "how often",
                     .fallback = 0.5,
                     .minimum = 0,
                     .maximum = 1}};
  def.shorthand = "probability";
  def.make = [](const Attributes& a) { return std::make_unique<Flip>(static_cast<float>(a.number("probability"))); };
  return def;
}

}  // namespace lockstep::data
