// color_jitter: brightness, then contrast, then saturation, each multiplied by a random factor 1 - x ... 1 + x.
// Fixed point; values are rounded to bytes after each.
#include <algorithm>
#include <cmath>

#include "data/augment_steps.hpp"

namespace lockstep::data {

namespace {

constexpr int kFactorBits = 16;
constexpr std::int64_t kFactorOne = std::int64_t{1} << kFactorBits;

/// `origin` + factor * (value - origin).
std::uint8_t away_from(std::int64_t origin, std::int64_t value, std::int64_t factor) {
  const std::int64_t moved = origin + (((value - origin) * factor + kFactorOne / 2) >> kFactorBits);
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(moved, 0, 255));
}

/// Luma with the weights of ITU-R BT.601; the first channel if there are not three.
std::int64_t gray(const std::uint8_t* pixel, std::int64_t channels) {
  if (channels != 3) return pixel[0];
  return (299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2] + 500) / 1000;
}

std::int64_t mean_gray(const ImageView& image) {
  const std::int64_t pixels = image.height * image.width;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < pixels; ++i) sum += gray(image.data + i * image.channels, image.channels);
  return pixels == 0 ? 0 : (sum + pixels / 2) / pixels;
}

class ColorJitter final : public AugmentStep {
 public:
  ColorJitter(float brightness, float contrast, float saturation)
      : brightness_(brightness), contrast_(contrast), saturation_(saturation) {}

  void apply(Image& image, RandomStream& random) const override {
    const std::int64_t brightness = factor(random, brightness_), contrast = factor(random, contrast_);
    const std::int64_t saturation = factor(random, saturation_);
    if (brightness != kFactorOne) {
      for (std::uint8_t& value : image.pixels()) value = away_from(0, value, brightness);
    }
    if (contrast != kFactorOne) {
      const std::int64_t middle = mean_gray(image.view());
      for (std::uint8_t& value : image.pixels()) value = away_from(middle, value, contrast);
    }
    if (saturation != kFactorOne && image.channels() == 3) {
      for (std::size_t i = 0; i < image.pixels().size(); i += 3) {
        std::uint8_t* pixel = &image.pixels()[i];
        const std::int64_t middle = gray(pixel, 3);
        for (int c = 0; c < 3; ++c) pixel[c] = away_from(middle, pixel[c], saturation);
      }
    }
  }

 private:
  static std::int64_t factor(RandomStream& random, float spread) {
    const float value = random.between(std::max(0.0F, 1 - spread), 1 + spread);
    return static_cast<std::int64_t>(std::floor(value * static_cast<float>(kFactorOne) + 0.5F));
  }

  float brightness_, contrast_, saturation_;
};

AttributeSpec spread(const char* name, const char* doc) {
  return {.name = name, .kind = AttributeKind::number, .doc = doc, .default_value = 0.0, .minimum = 0, .maximum = 10};
}

}  // namespace

AugmentDef make_color_jitter() {
  AugmentDef def;
  def.name = "color_jitter";
  def.doc = "random brightness, contrast and saturation";
  def.attributes = {spread("brightness", "0.4: the image times 0.6 ... 1.4"),
                    spread("contrast", "the same for the distance from the image's mean gray"),
                    spread("saturation", "the same for the distance from the pixel's gray")};
  def.make = [](const Attributes& a) {
    return std::make_unique<ColorJitter>(static_cast<float>(a.number("brightness")),
                                         static_cast<float>(a.number("contrast")),
                                         static_cast<float>(a.number("saturation")));
  };
  return def;
}

}  // namespace lockstep::data
