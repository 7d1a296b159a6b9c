#include "data/pixel_move.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep {

namespace {

void mirror(std::uint8_t* row, std::int64_t width, std::int64_t channels) {
  if (channels == 1) {
    std::reverse(row, row + width);
    return;
  }
  for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
    std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
  }
}

void shift(Image& image, const PixelMove& move, ImageSize size) {
  const ImageView old = image.replace(size.height, size.width);
  const std::int64_t c = old.channels, right = move.right;
  // The columns that exist in the old image.
  const std::int64_t first = std::clamp<std::int64_t>(-right, 0, size.width) * c;
  const std::int64_t last = std::clamp<std::int64_t>(old.width - right, 0, size.width) * c;
  for (std::int64_t y = 0; y < size.height; ++y) {
    std::uint8_t* row = image.row(y);
    const std::int64_t source = y + move.down;
    std::memset(row, 0, static_cast<std::size_t>(size.width * c));
    if (source < 0 || source >= old.height || first >= last) continue;
    std::memcpy(row + first, old.row(source) + right * c + first, static_cast<std::size_t>(last - first));
  }
}

void blacken(Image& image, const PixelRectangle& hole) {
  const std::int64_t c = image.channels();
  const std::int64_t top = std::max(0, hole.top), bottom = std::min<std::int64_t>(image.height(), hole.bottom);
  const std::int64_t left = std::max(0, hole.left), right = std::min<std::int64_t>(image.width(), hole.right);
  if (left >= right) return;
  for (std::int64_t y = top; y < bottom; ++y) {
    std::memset(image.row(y) + left * c, 0, static_cast<std::size_t>((right - left) * c));
  }
}

}  // namespace

void MoveStep::apply(Image& image, RandomStream& random) const {
  const ImageSize from{image.height(), image.width()}, to = output_size(from);
  const PixelMove move = draw(from, random);
  if (move.flip != 0) {
    for (std::int64_t y = 0; y < from.height; ++y) mirror(image.row(y), from.width, image.channels());
  }
  if (move.down != 0 || move.right != 0 || to != from) shift(image, move, to);
  blacken(image, move.hole);
}

}  // namespace lockstep
