// rand_augment: some operations after each other, each drawn from a list, all of one magnitude (Cubuk and others,
// "RandAugment: Practical automated data augmentation with a reduced search space", 2020). Operations and ranges are
// those of torchvision, without sharpness; what moves pixels is bilinear, and black outside.
#include <algorithm>
#include <array>
#include <cmath>

#include "data/augment_affine.hpp"
#include "data/augment_color.hpp"
#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

using Counts = std::array<std::int64_t, 256>;
using Curve = std::array<std::uint8_t, 256>;

Counts count_values(const Image& image, std::int64_t channel) {
  Counts counts{};
  const ImageView view = image.view();
  const std::int64_t values = view.height * view.width * view.channels;
  for (std::int64_t i = channel; i < values; i += view.channels) ++counts[view.data[i]];
  return counts;
}

template <class MakeCurve>
void map_channels(Image& image, const MakeCurve& make_curve) {
  const std::size_t channels = image.channels();
  for (std::size_t c = 0; c < channels; ++c) {
    const Curve curve = make_curve(count_values(image, static_cast<std::int64_t>(c)));
    for (std::size_t i = c; i < image.pixels().size(); i += channels) image.pixels()[i] = curve[image.pixels()[i]];
  }
}

Curve unchanged() {
  Curve curve{};
  for (std::size_t v = 0; v < curve.size(); ++v) curve[v] = v;
  return curve;
}

/// The darkest value becomes 0, the brightest 255.
Curve stretched(const Counts& counts) {
  Curve curve = unchanged();
  std::int64_t low = 0, high = 255;
  while (low < 255 && counts[low] == 0) ++low;
  while (high > 0 && counts[high] == 0) --high;
  if (high <= low) return curve;
  for (std::int64_t v = low; v <= high; ++v) {
    curve[v] = (2 * (v - low) * 255 + (high - low)) / (2 * (high - low));
  }
  return curve;
}

/// All values become about equally frequent, as PIL does it: the last one's count does not take part.
Curve equalized(const Counts& counts) {
  Curve curve = unchanged();
  std::int64_t all = 0, last = 0;
  int distinct = 0;
  for (const std::int64_t count : counts) {
    all += count;
    if (count > 0) last = count, ++distinct;
  }
  const std::int64_t step = (all - last) / 255;
  if (distinct <= 1 || step == 0) return curve;
  std::int64_t sum = step / 2;
  for (std::size_t v = 0; v < curve.size(); ++v) {
    curve[v] = std::min<std::int64_t>(255, sum / step);
    sum += counts[v];
  }
  return curve;
}

class RandAugment final : public AugmentStep {
 public:
  RandAugment(std::int64_t number, float magnitude) : number_(number), strength_(magnitude / 30) {}

  void apply(Image& image, RandomStream& random) const override {
    for (std::int64_t i = 0; i < number_; ++i) {
      const std::uint32_t which = random.below(kOperations), side = random.below(2);
      change(image, which, side == 0 ? strength_ : -strength_);
    }
  }

 private:
  static constexpr std::uint32_t kOperations = 13, kFirstOfColors = 6;
  static constexpr double kShear = 0.3, kShift = 150.0 / 331, kDegrees = 30;

  void change(Image& image, std::uint32_t which, float strength) const {
    const double signed_strength = strength;
    const std::int64_t factor = fixed_factor(1 + 0.9F * strength);
    if (image.is_mask() && which >= kFirstOfColors) return;
    switch (which) {
      case 0:
        return;
      case 1:
        return move_pixels(image, {.xy = kShear * signed_strength});
      case 2:
        return move_pixels(image, {.yx = kShear * signed_strength});
      case 3:
        return move_pixels(image, {.right = kShift * signed_strength * image.width()});
      case 4:
        return move_pixels(image, {.down = kShift * signed_strength * image.height()});
      case 5:
        return move_pixels(image, turn_by(kDegrees * signed_strength));
      case 6:
        return change_brightness(image, factor);
      case 7:
        return change_contrast(image, factor);
      case 8:
        return change_saturation(image, factor);
      case 9:
        return posterize(image);
      case 10:
        return solarize(image);
      case 11:
        return map_channels(image, stretched);
      default:
        return map_channels(image, equalized);
    }
  }

  /// Keeps the upper bits, 8 to 4 of them.
  void posterize(Image& image) const {
    const int dropped = std::floor(strength_ * 4 + 0.5F);
    for (std::uint8_t& value : image.pixels()) value = value >> dropped << dropped;
  }
  /// Turns bright values round, from a threshold on.
  void solarize(Image& image) const {
    const float threshold = 255 * (1 - strength_);
    for (std::uint8_t& value : image.pixels()) {
      if (value >= threshold) value = 255 - value;
    }
  }

  std::int64_t number_;
  float strength_;  ///< 0 ... 1
};

}  // namespace

AugmentDef make_rand_augment() {
  AugmentDef def;
  def.name = "rand_augment";
  def.doc = "random operations of one strength";
  def.attributes = {{.name = "number",
                     .kind = AttributeKind::integer,
                     .doc = "of operations, one after the other",
                     .default_value = std::int64_t{2},
                     .minimum = 1,
                     .maximum = 16},
                    {.name = "magnitude",
                     .kind = AttributeKind::number,
                     .doc = "their strength, from 0 to 30",
                     .default_value = 9.0,
                     .minimum = 0,
                     .maximum = 30}};
  def.shorthand = "magnitude";
  def.make = [](const Attributes& a) {
    return std::make_unique<RandAugment>(a.integer("number"), static_cast<float>(a.number("magnitude")));
  };
  return def;
}

}  // namespace lockstep::data
