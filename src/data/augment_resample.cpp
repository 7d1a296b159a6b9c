#include "data/augment_resample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

constexpr int kWeightBits = 15;
constexpr std::int32_t kWeightOne = 1 << kWeightBits;

/// Output i is the weighted sum of inputs first[i] ... first[i] + taps - 1; weights add up to kWeightOne.
struct Filter {
  std::vector<std::int64_t> first;
  std::vector<std::int32_t> weights;
  std::size_t taps = 0;
};

/// Rounds the weights of one output so that they add up to kWeightOne: the difference goes to the largest weight.
void to_fixed(const std::vector<double>& exact, std::int32_t* fixed) {
  double sum = 0;
  for (const double weight : exact) sum += weight;
  std::int32_t total = 0;
  std::size_t largest = 0;
  for (std::size_t k = 0; k < exact.size(); ++k) {
    fixed[k] = std::floor(exact[k] / sum * kWeightOne + 0.5);
    total += fixed[k];
    if (exact[k] > exact[largest]) largest = k;
  }
  fixed[largest] += kWeightOne - total;
}

/// From `in` pixels to `out`. Pixel i covers i ... i + 1, so that both images have the same edges.
Filter make_filter(std::int64_t in, std::int64_t out) {
  const double step = static_cast<double>(in) / out, reach = std::max(1.0, step);
  Filter filter;
  filter.taps = std::min(in, static_cast<std::int64_t>(2 * reach) + 2);
  filter.weights.resize(out * filter.taps);
  const std::int64_t taps = filter.taps;
  std::vector<double> exact(filter.taps);
  for (std::int64_t i = 0; i < out; ++i) {
    const double centre = (i + 0.5) * step - 0.5;
    const std::int64_t first =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(centre - reach)) + 1, 0, in - taps);
    for (std::int64_t k = 0; k < taps; ++k) {
      const double distance = (first + k) - centre;
      exact[k] = std::max(0.0, reach - (distance < 0 ? -distance : distance));
    }
    filter.first.push_back(first);
    to_fixed(exact, &filter.weights[i * filter.taps]);
  }
  return filter;
}

/// For each of `n` bytes of a row: the weighted sum over the rows.
LOCKSTEP_VECTORIZED void along_columns(const std::uint8_t* in, std::int64_t stride, std::int64_t n,
                                       const std::int32_t* weights, std::size_t taps, std::int32_t* sums,
                                       std::uint8_t* out) {
  for (std::int64_t x = 0; x < n; ++x) sums[x] = kWeightOne / 2;
  for (std::size_t k = 0; k < taps; ++k, in += stride) {
    const std::int32_t weight = weights[k];
    if (weight == 0) continue;
    for (std::int64_t x = 0; x < n; ++x) sums[x] += weight * in[x];
  }
  for (std::int64_t x = 0; x < n; ++x) out[x] = sums[x] >> kWeightBits;
}

template <int kChannels>
void along_row(const std::uint8_t* in, std::uint8_t* out, const Filter& filter) {
  const std::int32_t* weight = filter.weights.data();
  for (const std::int64_t first : filter.first) {
    const std::uint8_t* from = in + first * kChannels;
    std::array<std::int32_t, kChannels> sums{};
    sums.fill(kWeightOne / 2);
    for (std::size_t k = 0; k < filter.taps; ++k, ++weight, from += kChannels) {
      for (std::size_t c = 0; c < kChannels; ++c) sums[c] += *weight * from[c];
    }
    for (const std::int32_t sum : sums) *out++ = sum >> kWeightBits;
  }
}

using AlongRow = void (*)(const std::uint8_t*, std::uint8_t*, const Filter&);

AlongRow along_row_for(std::int64_t channels) {
  constexpr std::array<AlongRow, 4> kByChannels{along_row<1>, along_row<2>, along_row<3>, along_row<4>};
  LOCKSTEP_CHECK(channels >= 1 && channels <= 4, fmt::format("an image of {} channels", channels));
  return kByChannels[channels - 1];
}

/// The input pixel whose middle is nearest to that of output `i`.
std::int64_t nearest(std::int64_t i, std::int64_t in, std::int64_t out) {
  return std::min(in - 1, (2 * i + 1) * in / (2 * out));
}

void resample_nearest(Image& image, const Box& box, std::int64_t height, std::int64_t width) {
  const std::int64_t channels = image.channels();
  const ImageView old = image.replace(height, width);
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint8_t* const from = old.row(box.top + nearest(y, box.height, height)) + box.left * channels;
    for (std::int64_t x = 0; x < width; ++x) {
      std::copy_n(from + nearest(x, box.width, width) * channels, channels, image.row(y) + x * channels);
    }
  }
}

}  // namespace

void resample(Image& image, const Box& box, std::int64_t height, std::int64_t width) {
  if (image.is_mask()) return resample_nearest(image, box, height, width);
  const std::int64_t channels = image.channels(), row_bytes = box.width * channels;
  const Filter across = make_filter(box.width, width), down = make_filter(box.height, height);
  const ImageView whole = image.replace(height, box.width);
  std::vector<std::int32_t> sums(row_bytes);
  for (std::int64_t y = 0; y < height; ++y) {
    const std::size_t place = y;
    along_columns(whole.row(box.top + down.first[place]) + box.left * channels, whole.width * channels, row_bytes,
                  &down.weights[place * down.taps], down.taps, sums.data(), image.row(y));
  }
  const ImageView low = image.replace(height, width);
  const AlongRow shrink_row = along_row_for(channels);
  for (std::int64_t y = 0; y < height; ++y) shrink_row(low.row(y), image.row(y), across);
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
