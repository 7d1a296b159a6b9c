// resized_crop: a random part of the image, with random area and aspect ratio, resampled to one size.
#include <fmt/format.h>

#include <cmath>

#include "data/augment_resample.hpp"
#include "data/augment_steps/steps.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

constexpr int kTries = 10;

struct Range {
  float smallest_area, largest_area, ratio;
};

class ResizedCrop final : public AugmentStep {
 public:
  ResizedCrop(ImageSize size, Range range) : size_(size), range_(range) {}

  void apply(Image& image, RandomStream& random) const override {
    resample(image, choose(image.height(), image.width(), random), size_.height, size_.width);
  }

  ImageSize output_size(ImageSize /*input*/) const override { return size_; }

 private:
  /// The whole image if several tries do not fit.
  Box choose(std::int64_t height, std::int64_t width, RandomStream& random) const {
    for (int i = 0; i < kTries; ++i) {
      const float area = random.between(range_.smallest_area, range_.largest_area) * (height * width);
      const float long_to_short = random.between(1, range_.ratio);
      const float ratio = random.below(2) == 0 ? long_to_short : 1.0F / long_to_short;
      const std::int64_t w = std::floor(std::sqrt(area * ratio) + 0.5F);
      const std::int64_t h = std::floor(std::sqrt(area / ratio) + 0.5F);
      if (w < 1 || h < 1 || w > width || h > height) continue;
      const std::int64_t top = random.below(height - h + 1);
      const std::int64_t left = random.below(width - w + 1);
      return {top, left, h, w};
    }
    return {0, 0, height, width};
  }

  ImageSize size_;
  Range range_;
};

std::unique_ptr<AugmentStep> make(const Attributes& a) {
  const Range range{static_cast<float>(a.number("min_scale")), static_cast<float>(a.number("max_scale")),
                    static_cast<float>(a.number("max_ratio"))};
  if (range.smallest_area > range.largest_area) {
    throw Error(ExitCode::configuration,
                fmt::format("augmentation 'resized_crop': expected min_scale <= max_scale, found {} and {}",
                            a.number("min_scale"), a.number("max_scale")));
  }
  return std::make_unique<ResizedCrop>(size_of(a, "resized_crop"), range);
}

}  // namespace

AugmentDef make_resized_crop() {
  AugmentDef def;
  def.name = "resized_crop";
  def.doc = "a random part of the image, resized";
  def.attributes = {size_attribute("side of the square, or [height, width]"),
                    {.name = "min_scale",
                     .kind = AttributeKind::number,
                     .doc = "least fraction of the image's area",
                     .default_value = 0.08,
                     .minimum = 0.001,
                     .maximum = 1},
                    {.name = "max_scale",
                     .kind = AttributeKind::number,
                     .doc = "greatest fraction of the image's area",
                     .default_value = 1.0,
                     .minimum = 0.001,
                     .maximum = 1},
                    {.name = "max_ratio",
                     .kind = AttributeKind::number,
                     .doc = "greatest ratio of long to short side",
                     .default_value = 4.0 / 3,
                     .minimum = 1,
                     .maximum = 100}};
  def.shorthand = "size";
  def.make = make;
  return def;
}

}  // namespace lockstep::data
