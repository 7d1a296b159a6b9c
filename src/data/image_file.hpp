// Encoded images: JPEG (jpeg.cpp, by libjpeg-turbo) and PNG (png.cpp, by libpng), told apart by their first bytes, not
// by a file's name.
//
// Thread-safe: a call has all its state, so any number of threads may decode concurrently. Every error is Error(data)
// that says what is wrong with the bytes, without a file's name, which the caller knows. An image is u8 [height, width,
// channels], 1 or 3 channels; decoding overwrites `out` and reuses its memory if the shape is the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/augment.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::data {

/// What the header of an encoded image says.
struct ImageHeader {
  ImageSize size;
  std::int64_t channels = 0;  ///< 1 (grey) or 3 (RGB)
  bool deep = false;          ///< more than 8 bits, of which 8 are kept
  bool turned = false;        ///< to be turned or mirrored before it is shown, says Exif; decoding does not
};

/// Larger images are refused, so that a damaged or hostile header cannot use up all memory.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

// For both formats.

/// Throws Error(data): "not a JPEG or PNG file (begins with ...)", or what is wrong with the header. Like all functions
/// that return a header, it reads no further; `bytes` may be the beginning of a file.
[[nodiscard]] ImageHeader image_header(std::span<const std::byte> bytes);
void decode_image(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);
/// Whether the end marker is in `tail`, the end of the file: cheap. If not, the picture is incomplete, or other bytes
/// follow it, as phones write them.
[[nodiscard]] bool has_end(std::span<const std::byte> head, std::span<const std::byte> tail);
/// That `turned` of `images` have an orientation that decoding does not apply; "" for none.
[[nodiscard]] std::string orientation_warning(std::size_t turned, std::size_t images);
/// Whether Exif data, a TIFF header and what follows it, have an orientation other than the normal one.
[[nodiscard]] bool is_turned_by(std::span<const std::byte> exif);

[[nodiscard]] bool is_jpeg(std::span<const std::byte> bytes);
[[nodiscard]] ImageHeader jpeg_header(std::span<const std::byte> bytes);
/// Converts between grey and colour, as `channels` asks. Uses the slow exact DCT and smooth upsampling on every
/// machine, for the same bits. What libjpeg has to make up for (a file that ends early, corrupt data) is an error,
/// never a picture that is half grey.
void decode_jpeg(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);

[[nodiscard]] bool is_png(std::span<const std::byte> bytes);
/// Palettes count as colour.
[[nodiscard]] ImageHeader png_header(std::span<const std::byte> bytes);
/// 16, 1, 2 and 4 bits are scaled to 8; palettes become RGB. Alpha is dropped, not composited; gamma is ignored. Grey
/// becomes RGB if 3 channels are requested; requesting 1 channel of a colour image is an error.
void decode_png(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out);
/// What a mask's pixel values stand for.
class MaskCode {
 public:
  /// `values`: of each class; empty: 0, 1, 2 ... `ignored`: the value that does not count, unless it is one of
  /// `values`; -1: none.
  explicit MaskCode(std::size_t classes, const std::vector<std::int64_t>& values = {},
                    std::int64_t ignored = kIgnoredPixel);

  /// The class of a value; kIgnoredPixel: it does not count; -1: it is neither.
  int of(std::uint8_t value) const { return numbers_[value]; }
  std::int64_t value_of(std::size_t number) const {
    return values_.empty() ? static_cast<std::int64_t>(number) : values_.at(number);
  }
  std::int64_t ignored() const { return ignored_; }
  /// "a class, 0 to 2, or 255, which does not count"
  std::string expected() const;
  /// For notes: differs if another code has other classes for some value.
  std::string text() const;

 private:
  std::size_t classes_;
  std::vector<std::int64_t> values_;
  std::int64_t ignored_;
  std::array<std::int16_t, 256> numbers_{};
};

/// By a pixel's value: its color in the palette, 0xRRGGBB; -1: the mask has no such pixel, or no palette.
using MaskColors = std::array<std::int32_t, 256>;

/// A mask of a palette's indices, or of grey values as they are, of up to 8 bits: the classes as u8 [height, width, 1],
/// kIgnoredPixel where none counts. Throws for anything but a PNG of these, and for a value without a meaning.
/// `colors`: of the values that count, if that is asked for.
void decode_mask(std::span<const std::byte> bytes, const MaskCode& code, Tensor& out, MaskColors* colors = nullptr);

}  // namespace lockstep::data
