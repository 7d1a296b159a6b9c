// PNG by libpng, to 8 bits a channel. State lives in the call; errors as in jpeg.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/image_size.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::data {

[[nodiscard]] bool is_png(std::span<const std::byte> bytes);

/// Reads no further than the header; `bytes` may be the beginning of a file. Palettes count as colour.
[[nodiscard]] ImageSize png_size(std::span<const std::byte> bytes);

/// Overwrites `out` with u8 [height, width, channels], 1 or 3 channels; its memory is reused where it fits. 16 bits are
/// scaled to 8, 1, 2 and 4 bits to 8, palettes become RGB. Alpha is dropped, not composited; gamma is left as it is.
/// Grey becomes RGB where 3 channels are asked for; a colour image asked for in 1 channel is an error.
void decode_png(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);

}  // namespace lockstep::data
