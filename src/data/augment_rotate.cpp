// rotate: by a random angle around the centre, bilinear, black outside. Sine and cosine are our own polynomials, and
// sampling is in fixed point, so that the bytes do not depend on the machine's math library.
#include <cmath>
#include <cstring>

#include "data/augment_steps.hpp"

namespace lockstep::data {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kPositionBits = 16;
constexpr std::int64_t kPositionOne = std::int64_t{1} << kPositionBits, kFraction = kPositionOne - 1;

struct Turn {
  double sine, cosine;
};

/// Taylor series after reduction to an eighth of a turn: exact to about 1e-13.
Turn turn_by(double radians) {
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
  return static_cast<std::int64_t>(std::floor(value * kPositionOne + 0.5));
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
    out[c] = static_cast<std::uint8_t>((sum + (std::int64_t{1} << (2 * kPositionBits - 1))) >> (2 * kPositionBits));
  }
}

class Rotate final : public AugmentStep {
 public:
  explicit Rotate(float degrees) : degrees_(degrees) {}

  void apply(Image& image, RandomStream& random) const override {
    const Turn turn = turn_by(static_cast<double>(random.between(-degrees_, degrees_)) * (kPi / 180));
    const std::int64_t sine = to_fixed(turn.sine), cosine = to_fixed(turn.cosine);
    const ImageView old = image.replace(image.height(), image.width());
    // Coordinates are doubled, so that distances from the centre are integers.
    for (std::int64_t y = 0; y < old.height; ++y) {
      const std::int64_t dy = 2 * y - (old.height - 1);
      for (std::int64_t x = 0; x < old.width; ++x) {
        const std::int64_t dx = 2 * x - (old.width - 1);
        const std::int64_t from_x = (cosine * dx - sine * dy + (old.width - 1) * kPositionOne) >> 1;
        const std::int64_t from_y = (sine * dx + cosine * dy + (old.height - 1) * kPositionOne) >> 1;
        sample(old, from_y, from_x, image.row(y) + x * old.channels);
      }
    }
  }

 private:
  float degrees_;
};

}  // namespace

AugmentDef make_rotate() {
  AugmentDef def;
  def.name = "rotate";
  def.doc = "turns the image about its middle by a random angle";
  def.attributes = {{.name = "degrees",
                     .kind = AttributeKind::number,
                     .doc = "greatest angle, to either side",
                     .minimum = 0,
                     .maximum = 180}};
  def.shorthand = "degrees";
  def.make = [](const Attributes& a) { return std::make_unique<Rotate>(static_cast<float>(a.number("degrees"))); };
  return def;
}

}  // namespace lockstep::data
