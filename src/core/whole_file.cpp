#include "core/whole_file.hpp"

#include <algorithm>
#include <filesystem>
#include <span>

#include "core/files.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

constexpr std::size_t kReadBytes = std::size_t{8} << 20, kUnknownSize = 4096;  ///< per call

}  // namespace

std::optional<std::string> read_whole_file(const std::string& path, const std::function<void()>& read_some) {
  auto file = InputFile::open(path);
  if (!file) return std::nullopt;
  std::string bytes(std::max<std::size_t>(file->size() + 1, kUnknownSize), '\0');  // 1 more sees the end
  for (std::size_t filled = 0;;) {
    if (filled == bytes.size()) bytes.resize(2 * filled);
    const auto rest = std::as_writable_bytes(std::span(bytes)).subspan(filled);
    const std::size_t got = file->read(rest.first(std::min(rest.size(), kReadBytes)));
    filled += got;
    if (got == 0) {
      bytes.resize(filled);
      return bytes;
    }
    if (read_some) read_some();
  }
}

std::string read_kernel_file(const std::string& path) {
  try {
    return read_whole_file(path).value_or("");
  } catch (const Error&) {
    return "";
  }
}

void write_whole_file(const std::string& path, std::string_view bytes) {
  make_folders(std::filesystem::path(path).parent_path().string());
  NewFile file(path);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

std::string try_write_whole_file(const std::string& path, std::string_view bytes) {
  try {
    write_whole_file(path, bytes);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace lockstep
