// The helpers' implementation (named _test.cpp so that it is built into the tests).
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <cstdio>

#include <jpeglib.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "data/archive_input.hpp"
#include "data/reader_support.hpp"

namespace lockstep::test {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "lockstep-test-XXXXXX").string();
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void write_file(const std::string& path, const std::string& contents) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << contents;
}

std::string read_file(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::vector<std::uint8_t> picture(int width, int height, int channels, int seed) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) pixels.push_back(static_cast<std::uint8_t>(7 * seed + 5 * x + 3 * y + 40 * c));
    }
  }
  return pixels;
}

std::string jpeg(int width, int height, int channels, int seed) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long length = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&info, &buffer, &length);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  auto pixels = picture(width, height, channels, seed);
  for (int y = 0; y < height; ++y) {
    JSAMPROW row = pixels.data() + static_cast<std::ptrdiff_t>(y) * width * channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string out(reinterpret_cast<char*>(buffer), length);
  jpeg_destroy_compress(&info);
  std::free(buffer);  // NOLINT: allocated by libjpeg
  return out;
}

std::string png(int width, int height, int channels, int seed) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  const auto pixels = picture(width, height, channels, seed);
  png_alloc_size_t length = 0;
  png_image_write_to_memory(&image, nullptr, &length, 0, pixels.data(), 0, nullptr);
  std::string out(length, '\0');
  png_image_write_to_memory(&image, out.data(), &length, 0, pixels.data(), 0, nullptr);
  out.resize(length);
  return out;
}

std::string deep_png(int width, int height, int white) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_LINEAR_Y;
  std::vector<std::uint16_t> pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::uint16_t>(i * static_cast<std::size_t>(white) / (pixels.size() - 1));
  }
  png_alloc_size_t length = 0;
  png_image_write_to_memory(&image, nullptr, &length, 0, pixels.data(), 0, nullptr);
  std::string out(length, '\0');
  png_image_write_to_memory(&image, out.data(), &length, 0, pixels.data(), 0, nullptr);
  out.resize(length);
  return out;
}

void write_tar(const std::string& path, const Members& members, Packing packing) {
  const data::Utf8Names names;
  archive* handle = archive_write_new();
  if (packing == Packing::gzip) archive_write_add_filter_gzip(handle);
  if (packing == Packing::zstd) archive_write_add_filter_zstd(handle);
  if (packing == Packing::zip) {
    archive_write_set_format_zip(handle);
  } else if (packing == Packing::seven_zip) {
    archive_write_set_format_7zip(handle);
  } else {
    archive_write_set_format_pax_restricted(handle);
  }
  ASSERT_EQ(archive_write_open_filename(handle, path.c_str()), ARCHIVE_OK);
  for (const auto& [name, contents] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, name.ends_with('/') ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0755);
    archive_entry_set_size(entry, static_cast<std::int64_t>(contents.size()));
    ASSERT_EQ(archive_write_header(handle, entry), ARCHIVE_OK);
    archive_write_data(handle, contents.data(), contents.size());
    archive_entry_free(entry);
  }
  archive_write_close(handle);
  archive_write_free(handle);
}

void write_folder(const std::string& path, const Members& members) {
  for (const auto& [name, contents] : members) {
    if (name.ends_with('/')) {
      fs::create_directories(fs::path(path) / name);
    } else {
      write_file((fs::path(path) / name).string(), contents);
    }
  }
}

std::string gzip(const std::string& contents) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(contents.size() + 1024, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

SourceOptions source(SourceKind kind, std::vector<std::string> paths) {
  SourceOptions options;
  options.kind = kind;
  options.paths = std::move(paths);
  return options;
}

std::string data_error(const SourceOptions& options) {
  return message_of(ExitCode::data, [&] { (void)data::open(options); });
}

std::string without(std::string text, const std::string& path) {
  for (std::size_t at = 0; (at = text.find(path + "/")) != std::string::npos;) text.erase(at, path.size() + 1);
  return text;
}

std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  const auto values = tensor.as<std::uint8_t>();
  return {values.begin(), values.end()};
}

std::vector<std::int32_t> integers_of(const Tensor& tensor) {
  const auto values = tensor.as<std::int32_t>();
  return {values.begin(), values.end()};
}

}  // namespace lockstep::test
