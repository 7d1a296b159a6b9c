#include "data/augment_resample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

constexpr int kBits = 15;
constexpr std::int32_t kOne = 1 << kBits;

/// Output i is the weighted sum of inputs first[i] ... first[i] + taps - 1; weights add up to kOne.
struct Filter {
  std::vector<std::int64_t> first;
  std::vector<std::int32_t> weights;
  std::size_t taps = 0;
};

/// Rounds the weights of one output so that they add up to kOne: what is missing goes to the largest.
void to_fixed(const std::vector<double>& exact, std::int32_t* fixed) {
  double sum = 0;
  for (const double weight : exact) sum += weight;
  std::int32_t total = 0;
  std::size_t largest = 0;
  for (std::size_t k = 0; k < exact.size(); ++k) {
    fixed[k] = static_cast<std::int32_t>(exact[k] / sum * kOne + 0.5);
    total += fixed[k];
    if (exact[k] > exact[largest]) largest = k;
  }
  fixed[largest] += kOne - total;
}

/// From `in` pixels to `out`. Pixel i covers i ... i + 1, so that both images have the same edges.
Filter make_filter(std::int64_t in, std::int64_t out) {
  const double step = static_cast<double>(in) / static_cast<double>(out), reach = std::max(1.0, step);
  Filter filter;
  filter.taps = static_cast<std::size_t>(std::min(in, static_cast<std::int64_t>(2 * reach) + 2));
  filter.weights.resize(static_cast<std::size_t>(out) * filter.taps);
  const auto taps = static_cast<std::int64_t>(filter.taps);
  std::vector<double> exact(filter.taps);
  for (std::int64_t i = 0; i < out; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step - 0.5;
    const std::int64_t first =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(centre - reach)) + 1, 0, in - taps);
    for (std::int64_t k = 0; k < taps; ++k) {
      const double distance = static_cast<double>(first + k) - centre;
      exact[static_cast<std::size_t>(k)] = std::max(0.0, reach - (distance < 0 ? -distance : distance));
    }
    filter.first.push_back(first);
    to_fixed(exact, &filter.weights[static_cast<std::size_t>(i) * filter.taps]);
  }
  return filter;
}

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>((sum + kOne / 2) >> kBits);
}

void along_row(const std::uint8_t* in, std::uint8_t* out, std::int64_t channels, const Filter& filter) {
  for (std::size_t x = 0; x < filter.first.size(); ++x) {
    const std::uint8_t* from = in + filter.first[x] * channels;
    const std::int32_t* weights = &filter.weights[x * filter.taps];
    for (std::int64_t c = 0; c < channels; ++c) {
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < filter.taps; ++k)
        sum += weights[k] * from[static_cast<std::int64_t>(k) * channels + c];
      *out++ = rounded(sum);
    }
  }
}

void along_columns(const ImageView& in, std::size_t y, std::uint8_t* out, const Filter& filter,
                   std::vector<std::int32_t>& sums) {
  std::fill(sums.begin(), sums.end(), 0);
  for (std::size_t k = 0; k < filter.taps; ++k) {
    const std::int32_t weight = filter.weights[y * filter.taps + k];
    const std::uint8_t* row = in.row(filter.first[y] + static_cast<std::int64_t>(k));
    for (std::size_t x = 0; x < sums.size(); ++x) sums[x] += weight * row[x];
  }
  for (std::size_t x = 0; x < sums.size(); ++x) out[x] = rounded(sums[x]);
}

}  // namespace

void resample(Image& image, const Box& box, std::int64_t height, std::int64_t width) {
  const std::int64_t channels = image.channels();
  const Filter across = make_filter(box.width, width), down = make_filter(box.height, height);
  const ImageView whole = image.replace(box.height, width);
  for (std::int64_t y = 0; y < box.height; ++y) {
    along_row(whole.row(box.top + y) + box.left * channels, image.row(y), channels, across);
  }
  const ImageView narrow = image.replace(height, width);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(width * channels));
  for (std::int64_t y = 0; y < height; ++y) {
    along_columns(narrow, static_cast<std::size_t>(y), image.row(y), down, sums);
  }
}

AttributeSpec size_attribute(const char* doc) {
  return {.name = "size", .kind = AttributeKind::integers, .doc = doc, .minimum = 1, .maximum = 16384};
}

ImageSize size_of(const Attributes& attributes, const char* step) {
  const auto size = attributes.integers("size");
  if (size.empty() || size.size() > 2) {
    throw Error(ExitCode::configuration,
                fmt::format("augmentation '{}': size: expected one number, or height and width; found {} numbers", step,
                            size.size()));
  }
  return {size.front(), size.back()};
}

}  // namespace lockstep::data
