// center_crop: the middle of the image; black where the image is smaller.
#include <algorithm>
#include <cstring>

#include "data/augment_resample.hpp"
#include "data/augment_steps.hpp"

namespace lockstep::data {

namespace {

class CenterCrop final : public AugmentStep {
 public:
  explicit CenterCrop(ImageSize size) : size_(size) {}

  void apply(Image& image, RandomStream& /*random*/) const override {
    if (image.height() == size_.height && image.width() == size_.width) return;
    const ImageView old = image.replace(size_.height, size_.width);
    std::fill(image.pixels().begin(), image.pixels().end(), std::uint8_t{0});
    const std::int64_t height = std::min(old.height, size_.height), width = std::min(old.width, size_.width);
    const std::int64_t from_y = (old.height - height) / 2, from_x = (old.width - width) / 2;
    const std::int64_t to_y = (size_.height - height) / 2, to_x = (size_.width - width) / 2;
    for (std::int64_t y = 0; y < height; ++y) {
      std::memcpy(image.row(to_y + y) + to_x * old.channels, old.row(from_y + y) + from_x * old.channels,
                  static_cast<std::size_t>(width * old.channels));
    }
  }

  [[nodiscard]] ImageSize output_size(ImageSize /*input*/) const override { return size_; }

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
