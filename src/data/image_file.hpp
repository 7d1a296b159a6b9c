// Encoded images: JPEG (jpeg.cpp, by libjpeg-turbo) and PNG (png.cpp, by libpng), told apart by their first bytes, not
// by a file's name.
//
// State lives in the call, so that any number of threads may decode at once. Every error is Error(data) that says what
// is wrong with the bytes, without a file's name: the caller knows it. An image is u8 [height, width, channels], 1 or 3
// channels; decoding overwrites `out` and reuses its memory where the shape is the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lockstep/augment.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::data {

/// What the header of an encoded image says.
struct ImageHeader {
  ImageSize size;
  std::int64_t channels = 0;  ///< 1 (grey) or 3 (RGB)
};

/// Larger images are refused, so that a damaged or hostile header cannot ask for all memory.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

// Of either format.

/// Throws Error(data): "not a JPEG or PNG file (begins with ...)", or what is wrong with the header. Reads no further
/// than that, as all that give a header; `bytes` may be the beginning of a file.
[[nodiscard]] ImageHeader image_header(std::span<const std::byte> bytes);
void decode_image(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);
/// Throws if the picture is not all there. `tail` is the end of the file: cheap, it looks for the end marker only.
void check_end(std::span<const std::byte> head, std::span<const std::byte> tail);

[[nodiscard]] bool is_jpeg(std::span<const std::byte> bytes);
[[nodiscard]] ImageHeader jpeg_header(std::span<const std::byte> bytes);
/// Grey and colour are converted into each other as `channels` asks. The slow exact DCT and smooth upsampling, whatever
/// the machine: the same bits. A file that ends early is an error here, never a picture half grey.
void decode_jpeg(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);

[[nodiscard]] bool is_png(std::span<const std::byte> bytes);
/// Palettes count as colour.
[[nodiscard]] ImageHeader png_header(std::span<const std::byte> bytes);
/// 16 bits are scaled to 8, 1, 2 and 4 bits to 8, palettes become RGB. Alpha is dropped, not composited; gamma is left
/// as it is. Grey becomes RGB where 3 channels are asked for; a colour image asked for in 1 channel is an error.
void decode_png(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);

}  // namespace lockstep::data
