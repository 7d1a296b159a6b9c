#include "data/thumbnail.hpp"

#include <algorithm>
#include <array>

#include "core/round_up.hpp"

namespace lockstep::data {

Picture thumbnail(const ImageView& image, std::int64_t side) {
  const std::int64_t factor = divide_up(std::max({image.height, image.width, side}), side);
  Picture small(divide_up(image.height, factor), divide_up(image.width, factor), 0);
  for (std::int64_t y = 0; y < small.height; ++y) {
    for (std::int64_t x = 0; x < small.width; ++x) {
      std::array<std::int64_t, 3> sums{};
      std::int64_t count = 0;
      for (std::int64_t r = y * factor; r < std::min((y + 1) * factor, image.height); ++r) {
        for (std::int64_t c = x * factor; c < std::min((x + 1) * factor, image.width); ++c, ++count) {
          const std::uint8_t* pixel = image.row(r) + c * image.channels;
          for (std::size_t k = 0; k < sums.size(); ++k) sums.at(k) += pixel[image.channels >= 3 ? k : 0];
        }
      }
      const auto mean = [&](std::size_t k) { return static_cast<std::uint8_t>(sums.at(k) / count); };
      small.set(y, x, mean(0), mean(1), mean(2));
    }
  }
  return small;
}

}  // namespace lockstep::data
