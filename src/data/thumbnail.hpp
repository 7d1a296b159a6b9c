// A small picture of an image.
#pragma once

#include <cstdint>

#include "data/picture.hpp"
#include "lockstep/augment.hpp"

namespace lockstep::data {

/// Shrunk, by an integer factor, until neither side is longer than `side`; a pixel is the mean of those it stands for.
/// Images of one channel are grey; of more than three the first three are shown.
[[nodiscard]] Picture thumbnail(const ImageView& image, std::int64_t side);

}  // namespace lockstep::data
