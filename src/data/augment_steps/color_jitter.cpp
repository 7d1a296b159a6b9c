// color_jitter: brightness, then contrast, then saturation, each multiplied by a random factor 1 - x ... 1 + x.
#include <algorithm>

#include "data/augment_color.hpp"
#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

class ColorJitter final : public AugmentStep {
 public:
  ColorJitter(float brightness, float contrast, float saturation)
      : brightness_(brightness), contrast_(contrast), saturation_(saturation) {}

  void apply(Image& image, RandomStream& random) const override {
    if (image.is_mask()) return;
    const std::int64_t brightness = factor(random, brightness_), contrast = factor(random, contrast_);
    const std::int64_t saturation = factor(random, saturation_);
    change_brightness(image, brightness);
    change_contrast(image, contrast);
    change_saturation(image, saturation);
  }

 private:
  static std::int64_t factor(RandomStream& random, float spread) {
    return fixed_factor(random.between(std::max(0.0F, 1 - spread), 1 + spread));
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
