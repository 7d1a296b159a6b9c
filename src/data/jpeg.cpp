#include "data/image_file.hpp"

#include <fmt/format.h>

// jpeglib.h needs FILE and size_t to be declared first.
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <array>
#include <csetjmp>
#include <string_view>
#include <vector>

#include "data/readers/prepare.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// libjpeg reports errors through a callback that must not return, and exceptions must not pass through C code; so it
/// jumps.
struct JpegDecoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf escape{};
  std::array<char, JMSG_LENGTH_MAX> message{};
  bool truncated = false;
  std::array<char, JMSG_LENGTH_MAX> corrupt{};  ///< the first such warning

  JpegDecoder();
  ~JpegDecoder() { jpeg_destroy_decompress(&info); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
};

JpegDecoder& of(j_common_ptr info) {
  return *static_cast<JpegDecoder*>(info->client_data);
}

[[noreturn]] void on_error(j_common_ptr info) {
  JpegDecoder& decoder = of(info);
  info->err->format_message(info, decoder.message.data());
  std::longjmp(decoder.escape, 1);
}

/// libjpeg decodes on where data are missing or corrupt, and warns. Two warnings are not about the picture's data: a
/// newer version of JFIF, and a color transform of Adobe's that is not known.
void on_message(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level >= 0 || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM) return;
  JpegDecoder& decoder = of(info);
  if (code == JWRN_JPEG_EOF) decoder.truncated = true;
  if (decoder.corrupt[0] == '\0') info->err->format_message(info, decoder.corrupt.data());
}

JpegDecoder::JpegDecoder() {
  info.err = jpeg_std_error(&errors);
  errors.error_exit = on_error;
  errors.emit_message = on_message;
  info.client_data = this;
  if (setjmp(escape) != 0) throw Error(ExitCode::infrastructure, fmt::format("libjpeg: {}", message.data()));
  jpeg_create_decompress(&info);
  info.client_data = this;
}

/// Runs `body`, which must not own anything that a jump would leak.
template <class Body>
void guarded_jpeg(JpegDecoder& decoder, Body body) {
  if (setjmp(decoder.escape) != 0) {
    throw Error(ExitCode::data,
                decoder.truncated ? "truncated JPEG" : fmt::format("damaged JPEG ({})", decoder.message.data()));
  }
  body();
}

void read_jpeg_header(JpegDecoder& decoder, std::span<const std::byte> bytes) {
  if (!is_jpeg(bytes)) throw Error(ExitCode::data, "not a JPEG file");
  guarded_jpeg(decoder, [&decoder, bytes] {
    // Older versions of libjpeg take the bytes without const, but do not write to them.
    jpeg_mem_src(&decoder.info, reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data())), bytes.size());
    jpeg_save_markers(&decoder.info, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&decoder.info, TRUE);
  });
  const auto pixels = std::int64_t{decoder.info.image_width} * decoder.info.image_height;
  if (pixels == 0 || pixels > kMaxPixels) {
    throw Error(ExitCode::data, fmt::format("JPEG of {} x {} pixels: expected at least 1 and at most {}",
                                            decoder.info.image_width, decoder.info.image_height, kMaxPixels));
  }
}

bool is_cmyk(const jpeg_decompress_struct& info) {
  return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
}

/// Converts a row of four inks to `channels` values; Adobe's files have them inverted, and nearly all files are
/// Adobe's.
void convert_cmyk(const std::vector<std::uint8_t>& row, bool inverted, std::int64_t channels, std::uint8_t* out) {
  for (std::size_t x = 0; x * 4 < row.size(); ++x) {
    std::array<int, 3> rgb{};
    const int black = inverted ? row[4 * x + 3] : 255 - row[4 * x + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const int ink = inverted ? row[4 * x + c] : 255 - row[4 * x + c];
      rgb.at(c) = ink * black / 255;
    }
    if (channels == 1) {
      *out++ = (299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000;
    } else {
      for (const int value : rgb) *out++ = value;
    }
  }
}

bool is_turned(const jpeg_decompress_struct& info) {
  constexpr std::size_t kPrefix = 6;  // "Exif", two zeros
  for (const auto* marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (data.starts_with("Exif") && data.size() > kPrefix) {
      return is_turned_by(std::as_bytes(std::span(data)).subspan(kPrefix));
    }
  }
  return false;
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xFF} && bytes[1] == std::byte{0xD8} && bytes[2] == std::byte{0xFF};
}

ImageHeader jpeg_header(std::span<const std::byte> bytes) {
  JpegDecoder decoder;
  read_jpeg_header(decoder, bytes);
  return {{decoder.info.image_height, decoder.info.image_width},
          decoder.info.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3,
          false,
          is_turned(decoder.info)};
}

void decode_jpeg(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out) {
  JpegDecoder decoder;
  read_jpeg_header(decoder, bytes);
  auto& info = decoder.info;
  const auto stride = static_cast<std::size_t>(info.image_width) * channels;
  prepare(out, {DType::u8, {info.image_height, info.image_width, channels}});
  auto* const pixels = out.as<std::uint8_t>().data();
  const bool cmyk = is_cmyk(info);
  std::vector<std::uint8_t> inks(cmyk ? std::size_t{info.image_width} * 4 : 0);
  guarded_jpeg(decoder, [&] {
    info.out_color_space = cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      std::uint8_t* row = pixels + stride * info.output_scanline;
      JSAMPROW target = cmyk ? inks.data() : row;
      jpeg_read_scanlines(&info, &target, 1);
      if (cmyk) convert_cmyk(inks, info.saw_Adobe_marker != 0, channels, row);
    }
    jpeg_finish_decompress(&info);
  });
  if (decoder.truncated) throw Error(ExitCode::data, "truncated JPEG");
  if (decoder.corrupt[0] != '\0') {
    throw Error(ExitCode::data, fmt::format("damaged JPEG ({})", decoder.corrupt.data()));
  }
}

}  // namespace lockstep::data
