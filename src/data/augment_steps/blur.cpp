// blur: by a Gaussian of random width, rows and then columns, in fixed point; beyond the edge is the edge's pixel.
#include <algorithm>
#include <cmath>
#include <vector>

#include "data/augment_steps/steps.hpp"
#include "data/exact_math.hpp"

namespace lockstep::data {

namespace {

constexpr int kBlurBits = 16;

/// Weights of -radius ... radius, of which the middle one takes what rounding leaves, so that they add up to 2^16.
std::vector<std::int64_t> gaussian(double sigma) {
  const std::int64_t radius = std::floor(3 * sigma + 1);
  std::vector<double> values;
  double sum = 0;
  for (std::int64_t i = -radius; i <= radius; ++i) {
    sum += values.emplace_back(exact_exp(-static_cast<double>(i * i) / (2 * sigma * sigma)));
  }
  std::vector<std::int64_t> weights;
  std::int64_t left = std::int64_t{1} << kBlurBits;
  for (const double value : values) {
    left -= weights.emplace_back(static_cast<std::int64_t>(std::floor(value / sum * (1 << kBlurBits) + 0.5)));
  }
  weights[radius] += left;
  return weights;
}

class Blur final : public AugmentStep {
 public:
  Blur(float probability, float sigma) : probability_(probability), sigma_(sigma) {}

  void apply(Image& image, RandomStream& random) const override {
    const float chance = random.unit(), sigma = random.between(std::min(0.1F, sigma_), sigma_);
    if (chance >= probability_ || image.pixels().empty() || image.is_mask()) return;
    const auto weights = gaussian(sigma);
    pass(image, weights, false);
    pass(image, weights, true);
  }

 private:
  /// Along columns, or else along rows.
  static void pass(Image& image, const std::vector<std::int64_t>& weights, bool down) {
    const ImageView old = image.replace(image.height(), image.width());
    const std::int64_t row = old.width * old.channels, radius = std::ssize(weights) / 2;
    const std::int64_t step = down ? row : old.channels, length = down ? old.height : old.width;
    for (std::int64_t i = 0; i < old.height * row; ++i) {
      const std::int64_t at = down ? i / row : i % row / old.channels, first = i - at * step;
      std::int64_t sum = std::int64_t{1} << (kBlurBits - 1);
      for (std::int64_t k = -radius; k <= radius; ++k) {
        const std::int64_t from = std::clamp<std::int64_t>(at + k, 0, length - 1);
        sum += weights[k + radius] * old.data[first + from * step];
      }
      image.pixels()[i] = sum >> kBlurBits;
    }
  }

  float probability_, sigma_;
};

}  // namespace

AugmentDef make_blur() {
  AugmentDef def;
  def.name = "blur";
  def.doc = "blurs some images by a random Gaussian";
  def.attributes = {probability_attribute(0.5),
                    {.name = "sigma",
                     .kind = AttributeKind::number,
                     .doc = "largest standard deviation, in pixels; the smallest is 0.1",
                     .default_value = 2.0,
                     .minimum = 0,
                     .maximum = 100,
                     .above_minimum = true}};
  def.make = [](const Attributes& a) {
    return std::make_unique<Blur>(static_cast<float>(a.number("probability")), static_cast<float>(a.number("sigma")));
  };
  return def;
}

}  // namespace lockstep::data
