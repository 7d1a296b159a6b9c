// resize: to a height and width, or, given one number, such that the shorter side has that length.
#include <algorithm>

#include "data/augment_resample.hpp"
#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

class Resize final : public AugmentStep {
 public:
  Resize(ImageSize size, bool shorter_side) : size_(size), shorter_side_(shorter_side) {}

  void apply(Image& image, RandomStream& /*random*/) const override {
    const ImageSize old{image.height(), image.width()}, target = output_size(old);
    if (target == old) return;
    resample(image, {0, 0, old.height, old.width}, target.height, target.width);
  }

  ImageSize output_size(ImageSize input) const override {
    if (!shorter_side_) return size_;
    if (input.height < 0 || input.width < 0) return {-1, -1};
    const std::int64_t shorter = std::min(input.height, input.width);
    const auto scaled = [&](std::int64_t side) { return (side * size_.height + shorter / 2) / shorter; };
    return {scaled(input.height), scaled(input.width)};
  }

 private:
  ImageSize size_;
  bool shorter_side_;
};

}  // namespace

AugmentDef make_resize() {
  AugmentDef def;
  def.name = "resize";
  def.doc = "resizes the image";
  def.attributes = {size_attribute("[height, width]; one number: the shorter side")};
  def.shorthand = "size";
  def.random = false;
  def.make = [](const Attributes& a) {
    return std::make_unique<Resize>(size_of(a, "resize"), a.integers("size").size() == 1);
  };
  return def;
}

}  // namespace lockstep::data
