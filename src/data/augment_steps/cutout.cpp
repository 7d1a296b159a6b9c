// cutout: blackens a square whose centre is anywhere in the image; it may extend beyond the image.
#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

class Cutout final : public MoveStep {
 public:
  explicit Cutout(std::int32_t size) : size_(size) {}

  PixelMove draw(ImageSize input, RandomStream& random) const override {
    PixelMove move = standing(input);
    const std::int32_t y = random.below(input.height);
    const std::int32_t x = random.below(input.width);
    const std::int32_t top = y - size_ / 2, left = x - size_ / 2;
    move.hole = {top, left, top + size_, left + size_};
    return move;
  }

 private:
  std::int32_t size_;
};

}  // namespace

AugmentDef make_cutout() {
  AugmentDef def;
  def.name = "cutout";
  def.doc = "blackens a random square";
  def.attributes = {{.name = "size",
                     .kind = AttributeKind::integer,
                     .doc = "side of the square, in pixels",
                     .minimum = 1,
                     .maximum = 16384}};
  def.shorthand = "size";
  def.make = [](const Attributes& a) { return std::make_unique<Cutout>(static_cast<std::int32_t>(a.integer("size"))); };
  return def;
}

}  // namespace lockstep::data
