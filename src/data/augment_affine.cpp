#include "data/augment_affine.hpp"

#include <cmath>

namespace lockstep::data {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kPositionBits = 16;
constexpr std::int64_t kPositionOne = std::int64_t{1} << kPositionBits, kFraction = kPositionOne - 1;

struct Turn {
  double sine, cosine;
};

/// Taylor series after reduction to an eighth of a turn: exact to about 1e-13.
Turn turn_of(double radians) {
  const double quarters = std::floor(radians / (kPi / 2) + 0.5);
  const double x = radians - quarters * (kPi / 2), square = x * x;
  double sine = 1, cosine = 1;
  for (int n = 8; n >= 1; --n) {
    sine = 1 - sine * square / (2 * n * (2 * n + 1));
    cosine = 1 - cosine * square / ((2 * n - 1) * (2 * n));
  }
  sine *= x;
  switch (static_cast<int>(quarters) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

std::int64_t to_fixed(double value) {
  return std::floor(value * kPositionOne + 0.5);
}

/// Bilinear at fixed-point (y, x); pixels outside are black.
void sample(const ImageView& in, std::int64_t y, std::int64_t x, std::uint8_t* out) {
  const std::int64_t top = y >> kPositionBits, left = x >> kPositionBits, fy = y & kFraction, fx = x & kFraction;
  const auto pixel = [&](std::int64_t py, std::int64_t px, std::int64_t c) -> std::int64_t {
    if (py < 0 || px < 0 || py >= in.height || px >= in.width) return 0;
    return in.row(py)[px * in.channels + c];
  };
  for (std::int64_t c = 0; c < in.channels; ++c) {
    const std::int64_t above = pixel(top, left, c) * (kPositionOne - fx) + pixel(top, left + 1, c) * fx;
    const std::int64_t below = pixel(top + 1, left, c) * (kPositionOne - fx) + pixel(top + 1, left + 1, c) * fx;
    const std::int64_t sum = above * (kPositionOne - fy) + below * fy;
    out[c] = (sum + (std::int64_t{1} << (2 * kPositionBits - 1))) >> (2 * kPositionBits);
  }
}

/// The pixel whose middle is nearest to (y, x).
void sample_nearest(const ImageView& in, std::int64_t y, std::int64_t x, std::uint8_t outside, std::uint8_t* out) {
  const std::int64_t row = (y + kPositionOne / 2) >> kPositionBits, column = (x + kPositionOne / 2) >> kPositionBits;
  const bool inside = row >= 0 && column >= 0 && row < in.height && column < in.width;
  for (std::int64_t c = 0; c < in.channels; ++c) {
    out[c] = inside ? in.row(row)[column * in.channels + c] : outside;
  }
}

}  // namespace

Affine turn_by(double degrees) {
  const Turn turn = turn_of(degrees * (kPi / 180));
  return {.yy = turn.cosine, .yx = turn.sine, .xy = -turn.sine, .xx = turn.cosine};
}

void move_pixels(Image& image, const Affine& map) {
  const std::int64_t yy = to_fixed(map.yy), yx = to_fixed(map.yx), xy = to_fixed(map.xy), xx = to_fixed(map.xx);
  const ImageView old = image.replace(image.height(), image.width());
  // Coordinates are doubled, so that distances from the middle are integers.
  const std::int64_t down = to_fixed(2 * map.down) + (old.height - 1) * kPositionOne;
  const std::int64_t right = to_fixed(2 * map.right) + (old.width - 1) * kPositionOne;
  for (std::int64_t y = 0; y < old.height; ++y) {
    const std::int64_t dy = 2 * y - (old.height - 1);
    for (std::int64_t x = 0; x < old.width; ++x) {
      const std::int64_t dx = 2 * x - (old.width - 1);
      const std::int64_t from_y = (yx * dx + yy * dy + down) >> 1, from_x = (xx * dx + xy * dy + right) >> 1;
      std::uint8_t* const to = image.row(y) + x * old.channels;
      image.is_mask() ? sample_nearest(old, from_y, from_x, image.outside(), to) : sample(old, from_y, from_x, to);
    }
  }
}

}  // namespace lockstep::data
