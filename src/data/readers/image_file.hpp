// An encoded image of either format, told apart by its first bytes, not by its name.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/image_size.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::data {

/// Throws Error(data): "not a JPEG or PNG file (begins with ...)", or what is wrong with the header.
[[nodiscard]] ImageSize image_size(std::span<const std::byte> bytes);

/// Overwrites `out` with u8 [height, width, channels]; its memory is reused where the shape is the same.
void decode_image(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);

/// Throws if the picture is not all there. `tail` is the end of the file: cheap, it looks for the end marker only.
void check_end(std::span<const std::byte> head, std::span<const std::byte> tail);

}  // namespace lockstep::data
