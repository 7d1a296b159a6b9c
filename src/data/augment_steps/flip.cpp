// flip: mirrors left to right with the given probability.
#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

class Flip final : public MoveStep {
 public:
  explicit Flip(float probability) : probability_(probability) {}

  PixelMove draw(ImageSize input, RandomStream& random) const override {
    PixelMove move = standing(input);
    move.flip = random.unit() < probability_ ? 1 : 0;
    return move;
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
                     .default_value = 0.5,
                     .minimum = 0,
                     .maximum = 1}};
  def.shorthand = "probability";
  def.make = [](const Attributes& a) { return std::make_unique<Flip>(static_cast<float>(a.number("probability"))); };
  return def;
}

}  // namespace lockstep::data
