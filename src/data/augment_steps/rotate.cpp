// rotate: by a random angle around the centre.
#include "data/augment_affine.hpp"
#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

class Rotate final : public AugmentStep {
 public:
  explicit Rotate(float degrees) : degrees_(degrees) {}

  void apply(Image& image, RandomStream& random) const override {
    move_pixels(image, turn_by(random.between(-degrees_, degrees_)));
  }

 private:
  float degrees_;
};

}  // namespace

AugmentDef make_rotate() {
  AugmentDef def;
  def.name = "rotate";
  def.doc = "rotates the image by a random angle";
  def.attributes = {{.name = "degrees",
                     .kind = AttributeKind::number,
                     .doc = "greatest angle, to either side",
                     .minimum = 0,
                     .maximum = 180}};
  def.shorthand = "degrees";
  def.make = [](const Attributes& a) { return std::make_unique<Rotate>(static_cast<float>(a.number("degrees"))); };
  return def;
}

}  // namespace lockstep::data
