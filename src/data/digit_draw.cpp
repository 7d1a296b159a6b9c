// From strokes to pixels: points are jittered, curves become short segments, segments are warped and placed in the
// image, and each pixel's ink depends on its distance from the nearest segment.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "data/digits.hpp"
#include "lockstep/random.hpp"

namespace lockstep::data {

namespace {

// How the ten digits are written: a few styles each, as strokes through control points.
// The order of styles and points is part of the digits' definition: changing it changes their bits.

/// In a box of 100 x 100 units; y grows downwards.
struct StrokePoint {
  std::int8_t x, y;
};

struct Stroke {
  bool smooth;  ///< a curve through the points (Catmull-Rom), else straight lines between them
  std::vector<StrokePoint> points;
};

using DigitStyle = std::vector<Stroke>;

constexpr bool kCurve = true, kLines = false;

using Styles = std::vector<DigitStyle>;

Styles zeros() {
  return {
      {{kCurve, {{50, 0}, {15, 18}, {5, 50}, {15, 82}, {50, 100}, {85, 82}, {95, 50}, {85, 18}, {50, 0}}}},
      {{kCurve, {{65, 5}, {30, 5}, {10, 45}, {25, 90}, {55, 98}, {88, 60}, {80, 15}, {55, 2}, {40, 12}}}},
  };
}

Styles ones() {
  return {
      {{kLines, {{50, 0}, {50, 100}}}},
      {{kLines, {{30, 22}, {55, 0}, {55, 100}}}},
      {{kLines, {{28, 22}, {55, 0}, {55, 100}}}, {kLines, {{28, 100}, {82, 100}}}},
  };
}

Styles twos() {
  return {
      {{kCurve, {{12, 25}, {30, 3}, {65, 2}, {85, 25}, {70, 52}, {35, 80}, {8, 100}}}, {kLines, {{8, 100}, {92, 100}}}},
      {{kCurve, {{15, 22}, {40, 0}, {78, 12}, {75, 45}, {45, 75}, {15, 97}, {10, 85}, {30, 82}, {60, 95}, {92, 92}}}},
  };
}

Styles threes() {
  return {
      {{kCurve, {{12, 12}, {45, 0}, {80, 15}, {72, 38}, {42, 48}}},
       {kCurve, {{42, 48}, {80, 58}, {88, 80}, {50, 100}, {10, 88}}}},
      {{kLines, {{15, 2}, {80, 2}, {42, 42}}}, {kCurve, {{42, 42}, {82, 55}, {86, 82}, {50, 100}, {10, 88}}}},
  };
}

Styles fours() {
  return {
      {{kLines, {{20, 0}, {12, 55}, {90, 60}}}, {kLines, {{68, 20}, {68, 100}}}},
      {{kLines, {{65, 0}, {8, 65}, {95, 65}}}, {kLines, {{65, 0}, {65, 100}}}},
      {{kCurve, {{15, 5}, {12, 40}, {35, 54}, {76, 45}}}, {kCurve, {{80, 0}, {76, 50}, {70, 100}}}},
  };
}

Styles fives() {
  return {
      {{kLines, {{80, 2}, {22, 2}, {18, 42}}}, {kCurve, {{18, 42}, {55, 35}, {88, 60}, {75, 92}, {40, 100}, {8, 88}}}},
      {{kCurve, {{85, 5}, {40, 5}, {20, 25}, {35, 45}, {75, 60}, {75, 90}, {35, 100}, {10, 88}}}},
  };
}

Styles sixes() {
  return {
      {{kCurve, {{70, 2}, {30, 25}, {10, 65}, {25, 95}, {60, 98}, {85, 75}, {65, 55}, {30, 58}, {12, 75}}}},
      {{kCurve, {{45, 0}, {15, 50}, {12, 80}, {45, 100}, {80, 85}, {75, 60}, {45, 52}, {18, 70}}}},
  };
}

Styles sevens() {
  return {
      {{kLines, {{8, 5}, {90, 5}, {40, 100}}}},
      {{kLines, {{8, 5}, {90, 5}, {42, 100}}}, {kLines, {{35, 52}, {82, 50}}}},
      {{kLines, {{8, 24}, {10, 5}, {88, 5}}}, {kCurve, {{88, 5}, {60, 45}, {45, 100}}}},
  };
}

Styles eights() {
  return {
      {{kCurve,
        {{75, 12},
         {45, 0},
         {18, 18},
         {40, 45},
         {78, 68},
         {75, 95},
         {40, 100},
         {15, 82},
         {30, 58},
         {65, 38},
         {80, 15}}}},
      {{kCurve, {{50, 0}, {22, 12}, {25, 38}, {50, 48}, {76, 36}, {78, 12}, {50, 0}}},
       {kCurve, {{50, 48}, {15, 65}, {15, 90}, {50, 100}, {86, 90}, {85, 65}, {50, 48}}}},
  };
}

Styles nines() {
  return {
      {{kCurve, {{80, 22}, {50, 0}, {18, 18}, {22, 45}, {55, 50}, {80, 25}}},
       {kCurve, {{82, 12}, {80, 60}, {70, 100}}}},
      {{kCurve, {{82, 20}, {50, 0}, {15, 22}, {25, 48}, {60, 48}, {82, 22}, {84, 65}, {65, 95}, {25, 98}}}},
  };
}

/// The styles of digit 0 ... 9.
std::span<const DigitStyle> digit_styles(int digit) {
  static const std::array<Styles, 10> all{zeros(), ones(),  twos(),   threes(), fours(),
                                          fives(), sixes(), sevens(), eights(), nines()};
  return all.at(digit);
}

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
      float* row = &squared_[static_cast<std::size_t>(kSide * y)];
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
