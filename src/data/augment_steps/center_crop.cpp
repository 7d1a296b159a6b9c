// center_crop: the middle of the image; black where the image is smaller.
#include "data/augment_resample.hpp"
#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

/// Where the new image begins in the old one; negative if it is larger.
std::int32_t middle(std::int64_t old, std::int64_t now) {
  return old > now ? (old - now) / 2 : -((now - old) / 2);
}

class CenterCrop final : public MoveStep {
 public:
  explicit CenterCrop(ImageSize size) : size_(size) {}

  PixelMove draw(ImageSize input, RandomStream& /*random*/) const override {
    PixelMove move = standing(input);
    move.down = middle(input.height, size_.height);
    move.right = middle(input.width, size_.width);
    return move;
  }

  ImageSize output_size(ImageSize /*input*/) const override { return size_; }

 private:
  ImageSize size_;
};

}  // namespace

AugmentDef make_center_crop() {
  AugmentDef def;
  def.name = "center_crop";
  def.doc = "keeps the middle of the image";
  def.attributes = {size_attribute("side of the square, or [height, width]")};
  def.shorthand = "size";
  def.random = false;
  def.make = [](const Attributes& a) { return std::make_unique<CenterCrop>(size_of(a, "center_crop")); };
  return def;
}

}  // namespace lockstep::data
