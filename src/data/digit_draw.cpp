// From strokes to pixels: points are jittered, curves become short segments, segments are warped and placed in the
// image, and each pixel's ink depends on its distance from the nearest segment.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "data/digit_strokes.hpp"
#include "data/digits.hpp"
#include "lockstep/random.hpp"

namespace lockstep::data {

namespace {

constexpr int kSide = kDigitSide;
constexpr int kPiecesPerSpan = 4;
constexpr float kFar = 1e6F;

struct Point {
  float x, y;
};

Point operator+(Point a, Point b) {
  return {a.x + b.x, a.y + b.y};
}
Point operator*(float s, Point a) {
  return {s * a.x, s * a.y};
}

float symmetric(RandomStream& random, float size) {
  return random.between(-size, size);
}

/// Sum of three uniform values: most results are near 0, none beyond `size`.
float bell(RandomStream& random, float size) {
  float sum = 0;
  for (int i = 0; i < 3; ++i) sum += symmetric(random, 1);  // a loop, because the order of draws determines the bits
  return size * (sum / 3.0F);
}

/// A writer's hand: warps the unit box (-1 ... 1 in both directions) and places it in the image.
class Hand {
 public:
  explicit Hand(RandomStream& random) {
    for (Point& shift : bend_) shift = {symmetric(random, 0.18F), symmetric(random, 0.18F)};
    const float half_turn = bell(random, 0.30F);  // tan(angle / 2): about 33 degrees at most
    const float width = random.between(4.6F, 7.6F), height = random.between(6.6F, 10.0F);
    const float slant = bell(random, 0.5F);
    const float scale = 1.0F / (1.0F + half_turn * half_turn);
    const float cosine = (1.0F - half_turn * half_turn) * scale, sine = 2.0F * half_turn * scale;
    column_x_ = {cosine * width, sine * width};
    column_y_ = {cosine * (slant * width) - sine * height, sine * (slant * width) + cosine * height};
    centre_ = {13.5F + symmetric(random, 3.6F), 13.5F + symmetric(random, 3.2F)};
  }

  Point place(Point p) const {
    const Point q = p + bend(p);
    return (q.x * column_x_ + q.y * column_y_) + centre_;
  }

 private:
  /// Bilinear between random shifts at the nodes of a 3 x 3 grid.
  Point bend(Point p) const {
    const float gx = std::clamp(p.x + 1.0F, 0.0F, 1.999F), gy = std::clamp(p.y + 1.0F, 0.0F, 1.999F);
    const int ix = gx, iy = gy;
    const float fx = gx - ix, fy = gy - iy;
    const auto node = [&](int x, int y) { return bend_[3 * y + x]; };
    const Point top = (1.0F - fx) * node(ix, iy) + fx * node(ix + 1, iy);
    const Point bottom = (1.0F - fx) * node(ix, iy + 1) + fx * node(ix + 1, iy + 1);
    return (1.0F - fy) * top + fy * bottom;
  }

  std::array<Point, 9> bend_{};
  Point column_x_{}, column_y_{}, centre_{};
};

Point catmull_rom(Point a, Point b, Point c, Point d, float t) {
  const Point linear = c + -1.0F * a;
  const Point square = ((2.0F * a + -5.0F * b) + 4.0F * c) + -1.0F * d;
  const Point cubic = ((3.0F * b + -1.0F * a) + -3.0F * c) + d;
  return b + 0.5F * (t * (linear + t * (square + t * cubic)));
}

/// Squared distance of every pixel to the nearest segment so far.
class Canvas {
 public:
  Canvas() { squared_.fill(kFar); }

  void add(Point a, Point b) {
    constexpr float kReach = 3.5F;  // pixels farther away get no ink
    const auto low = [](float v) { return std::clamp(static_cast<int>(v - kReach), 0, kSide); };
    const auto high = [](float v) { return std::clamp(static_cast<int>(v + kReach) + 1, 0, kSide); };
    const int top = low(std::min(a.y, b.y)), bottom = high(std::max(a.y, b.y));
    const int left = low(std::min(a.x, b.x)), right = high(std::max(a.x, b.x));
    const float dx = b.x - a.x, dy = b.y - a.y;
    const float inverse = 1.0F / ((dx * dx + dy * dy) + 1e-6F);
    for (int y = top; y < bottom; ++y) {
      float* row = &squared_[kSide * y];
      const float py = y - a.y;
      for (int x = left; x < right; ++x) {
        const float px = x - a.x;
        const float along = std::clamp((px * dx + py * dy) * inverse, 0.0F, 1.0F);
        const float ox = px - along * dx, oy = py - along * dy;
        row[x] = std::min(row[x], ox * ox + oy * oy);
      }
    }
  }

  float distance(int pixel) const { return std::sqrt(squared_[pixel]); }

 private:
  std::array<float, static_cast<std::size_t>(kSide) * kSide> squared_{};
};

void draw_stroke(const Stroke& stroke, const Hand& hand, RandomStream& random, Canvas& canvas) {
  std::array<Point, 16> points{};
  const std::size_t n = stroke.points.size();
  for (std::size_t i = 0; i < n; ++i) {
    points[i] = {(stroke.points[i].x - 50.0F) * 0.02F + symmetric(random, 0.11F),
                 (stroke.points[i].y - 50.0F) * 0.02F + symmetric(random, 0.11F)};
  }
  Point last = hand.place(points[0]);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const Point before = points[i == 0 ? 0 : i - 1], after = points[std::min(i + 2, n - 1)];
    for (int piece = 1; piece <= kPiecesPerSpan; ++piece) {
      const float t = static_cast<float>(piece) / kPiecesPerSpan;
      const Point next = stroke.smooth ? catmull_rom(before, points[i], points[i + 1], after, t)
                                       : points[i] + t * (points[i + 1] + -1.0F * points[i]);
      const Point placed = hand.place(next);
      canvas.add(last, placed);
      last = placed;
    }
  }
}

}  // namespace

void draw_digit(int digit, std::uint64_t key, std::uint64_t index, std::span<std::uint8_t> pixels,
                std::span<std::uint8_t> mask) {
  RandomStream random(key, index);
  const auto styles = digit_styles(digit);
  const DigitStyle& style = styles[random.below(styles.size())];
  const Hand hand(random);
  const float radius = random.between(0.55F, 1.75F), ink = random.between(130.0F, 255.0F);
  const float noise = random.between(0.0F, 50.0F);
  Canvas canvas;
  for (const Stroke& stroke : style) draw_stroke(stroke, hand, random, canvas);
  RandomStream grain(key, index, 1);
  for (int i = 0; i < kSide * kSide; i += 4) {
    const std::uint32_t word = grain.word();  // a byte of noise for each of four pixels
    for (int k = 0; k < 4; ++k) {
      const float cover = std::clamp(radius + 0.5F - canvas.distance(i + k), 0.0F, 1.0F);
      const float speckle = ((word >> (8 * k)) & 255U) * (1.0F / 128.0F) - 1.0F;
      const float value = std::clamp(ink * cover + noise * speckle, 0.0F, 255.0F);
      pixels[i + k] = value;
      if (!mask.empty()) mask[i + k] = cover >= 0.5F ? 255 : 0;
    }
  }
}

}  // namespace lockstep::data
