// crop: pads the image with black and cuts the old size out at a random place.
#include <algorithm>
#include <cstring>

#include "data/augment_steps.hpp"

namespace lockstep::data {

namespace {

class Crop final : public AugmentStep {
 public:
  explicit Crop(std::int64_t padding) : padding_(padding) {}

  void apply(Image& image, RandomStream& random) const override {
    const auto places = static_cast<std::uint32_t>(2 * padding_ + 1);
    const std::int64_t down = std::int64_t{random.below(places)} - padding_;
    const std::int64_t right = std::int64_t{random.below(places)} - padding_;
    if (down == 0 && right == 0) return;
    const ImageView old = image.replace(image.height(), image.width());
    const std::int64_t c = old.channels, bytes = old.width * c;
    // Pixel (y, x) comes from (y + down, x + right); `first` ... `last` are the columns that exist there.
    const std::int64_t first = std::clamp<std::int64_t>(-right, 0, old.width) * c;
    const std::int64_t last = std::clamp<std::int64_t>(old.width - right, 0, old.width) * c;
    for (std::int64_t y = 0; y < old.height; ++y) {
      std::uint8_t* row = image.row(y);
      const std::int64_t source = y + down;
      std::memset(row, 0, static_cast<std::size_t>(bytes));
      if (source < 0 || source >= old.height || first >= last) continue;
      std::memcpy(row + first, old.row(source) + right * c + first, static_cast<std::size_t>(last - first));
    }
  }

 private:
  std::int64_t padding_;
};

}  // namespace

AugmentDef make_crop() {
  AugmentDef def;
  def.name = "crop";
  def.doc = "pads the image with black and cuts its old size out at a random place";
  def.attributes = {{.name = "padding",
                     .kind = AttributeKind::integer,
                     .doc = "pixels added on each side",
                     .fallback = std::int64_t{4},
                     .minimum = 0,
                     .maximum = 1024}};
  def.shorthand = "padding";
  def.make = [](const Attributes& a) { return std::make_unique<Crop>(a.integer("padding")); };
  return def;
}

}  // namespace lockstep::data
