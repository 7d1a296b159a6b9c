#include "data/augment_color.hpp"

#include <algorithm>

#include "data/augment_steps/steps.hpp"

namespace lockstep::data {

namespace {

std::int64_t mean_gray(const ImageView& image) {
  const std::int64_t pixels = image.height * image.width;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < pixels; ++i) sum += luma(image.data + i * image.channels, image.channels);
  return pixels == 0 ? 0 : (sum + pixels / 2) / pixels;
}

}  // namespace

std::uint8_t away_from(std::int64_t origin, std::int64_t value, std::int64_t factor) {
  const std::int64_t moved = origin + (((value - origin) * factor + kFactorOne / 2) >> kFactorBits);
  return std::clamp<std::int64_t>(moved, 0, 255);
}

void change_brightness(Image& image, std::int64_t factor) {
  if (factor == kFactorOne) return;
  for (std::uint8_t& value : image.pixels()) value = away_from(0, value, factor);
}

void change_contrast(Image& image, std::int64_t factor) {
  if (factor == kFactorOne) return;
  const std::int64_t middle = mean_gray(image.view());
  for (std::uint8_t& value : image.pixels()) value = away_from(middle, value, factor);
}

void change_saturation(Image& image, std::int64_t factor) {
  if (factor == kFactorOne || image.channels() != 3) return;
  for (std::size_t i = 0; i < image.pixels().size(); i += 3) {
    std::uint8_t* pixel = &image.pixels()[i];
    const std::int64_t middle = luma(pixel, 3);
    for (int c = 0; c < 3; ++c) pixel[c] = away_from(middle, pixel[c], factor);
  }
}

}  // namespace lockstep::data
