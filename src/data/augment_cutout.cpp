// cutout: blackens a square whose centre is anywhere in the image; it may stick out.
#include <algorithm>
#include <cstring>

#include "data/augment_steps.hpp"

namespace lockstep::data {

namespace {

class Cutout final : public AugmentStep {
 public:
  explicit Cutout(std::int64_t size) : size_(size) {}

  void apply(Image& image, RandomStream& random) const override {
    const std::int64_t y = random.below(static_cast<std::uint32_t>(image.height()));
    const std::int64_t x = random.below(static_cast<std::uint32_t>(image.width()));
    const std::int64_t top = std::max<std::int64_t>(0, y - size_ / 2), left = std::max<std::int64_t>(0, x - size_ / 2);
    const std::int64_t bottom = std::min(image.height(), y - size_ / 2 + size_);
    const std::int64_t right = std::min(image.width(), x - size_ / 2 + size_);
    for (std::int64_t row = top; row < bottom; ++row) {
      std::memset(image.row(row) + left * image.channels(), 0,
                  static_cast<std::size_t>((right - left) * image.channels()));
    }
  }

 private:
  std::int64_t size_;
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
  def.make = [](const Attributes& a) { return std::make_unique<Cutout>(a.integer("size")); };
  return def;
}

}  // namespace lockstep::data
