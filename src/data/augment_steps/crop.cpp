// crop: pads the image with black and cuts the old size out at a random position.
#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

class Crop final : public MoveStep {
 public:
  explicit Crop(std::int32_t padding) : padding_(padding) {}

  PixelMove draw(ImageSize input, RandomStream& random) const override {
    const std::uint32_t places = 2 * padding_ + 1;
    PixelMove move = standing(input);
    move.down = static_cast<std::int32_t>(random.below(places)) - padding_;
    move.right = static_cast<std::int32_t>(random.below(places)) - padding_;
    return move;
  }

 private:
  std::int32_t padding_;
};

}  // namespace

AugmentDef make_crop() {
  AugmentDef def;
  def.name = "crop";
  def.doc = "pads the image with black and crops it to its old size at random";
  def.attributes = {{.name = "padding",
                     .kind = AttributeKind::integer,
                     .doc = "pixels added on each side",
                     .default_value = std::int64_t{4},
                     .minimum = 0,
                     .maximum = 1024}};
  def.shorthand = "padding";
  def.make = [](const Attributes& a) {
    return std::make_unique<Crop>(static_cast<std::int32_t>(a.integer("padding")));
  };
  return def;
}

}  // namespace lockstep::data
