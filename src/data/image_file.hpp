// Encoded images: JPEG (jpeg.cpp, by libjpeg-turbo) and PNG (png.cpp, by libpng), told apart by their first bytes, not
// by a file's name.
//
// Thread-safe: a call has all its state, so any number of threads may decode concurrently. Every error is Error(data)
// that says what is wrong with the bytes, without a file's name, which the caller knows. An image is u8 [height, width,
// channels], 1 or 3 channels; decoding overwrites `out` and reuses its memory if the shape is the same.
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

/// Larger images are refused, so that a damaged or hostile header cannot use up all memory.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

// For both formats.

/// Throws Error(data): "not a JPEG or PNG file (begins with ...)", or what is wrong with the header. Like all functions
/// that return a header, it reads no further; `bytes` may be the beginning of a file.
[[nodiscard]] ImageHeader image_header(std::span<const std::byte> bytes);
void decode_image(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);
/// Throws if the picture is incomplete. `tail` is the end of the file: cheap, because it only looks for the end marker.
void check_end(std::span<const std::byte> head, std::span<const std::byte> tail);

[[nodiscard]] bool is_jpeg(std::span<const std::byte> bytes);
[[nodiscard]] ImageHeader jpeg_header(std::span<const std::byte> bytes);
/// Converts between grey and colour, as `channels` asks. Uses the slow exact DCT and smooth upsampling on every
/// machine, for the same bits. A file that ends early is an error, never a picture that is half grey.
void decode_jpeg(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);

[[nodiscard]] bool is_png(std::span<const std::byte> bytes);
/// Palettes count as colour.
[[nodiscard]] ImageHeader png_header(std::span<const std::byte> bytes);
/// 16, 1, 2 and 4 bits are scaled to 8; palettes become RGB. Alpha is dropped, not composited; gamma is ignored. Grey
/// becomes RGB if 3 channels are requested; requesting 1 channel of a colour image is an error.
void decode_png(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);
/// A mask: the bytes of a palette's indices, or grey values as they are, of up to 8 bits, as u8 [height, width, 1].
/// Throws for anything but a PNG of these, and for a value that is neither below `classes` nor kIgnoredPixel.
void decode_mask(std::span<const std::byte> bytes, std::int64_t classes, Tensor& out);

}  // namespace lockstep::data
