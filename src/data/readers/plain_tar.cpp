// FileTree of an uncompressed tar: ustar, with GNU's and pax's long names and sizes. Offsets are found once by walking
// the headers; a file is then one read. (libarchive does not provide the offset of a file's bytes.)
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "core/round_up.hpp"
#include "data/archive.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t kTarBlock = 512;
using Header = std::array<unsigned char, kTarBlock>;

std::string_view text(const Header& header, std::size_t at, std::size_t length) {
  const std::string_view field(reinterpret_cast<const char*>(header.data()) + at, length);
  return field.substr(0, field.find('\0'));
}

/// Octal digits, or GNU's base 256 if the first bit is set.
std::uint64_t number(const Header& header, std::size_t at, std::size_t length) {
  std::uint64_t value = 0;
  if ((header.at(at) & 0x80) != 0) {
    for (std::size_t i = at + 1; i < at + length; ++i) value = (value << 8) | header.at(i);
    return value;
  }
  for (const char c : text(header, at, length)) {
    if (c >= '0' && c <= '7') value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

bool is_zero(const Header& header) {
  return std::string_view(reinterpret_cast<const char*>(header.data()), kTarBlock).find_first_not_of('\0') ==
         std::string_view::npos;
}

bool has_valid_checksum(const Header& header) {
  std::uint64_t sum = std::uint64_t{8} * ' ';  // the checksum field itself counts as spaces
  for (std::size_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? 0U : header.at(i);
  return sum == number(header, 148, 8);
}

class PlainTar : public FileTree {
 public:
  PlainTar(std::unique_ptr<File> file, const std::string& path) : FileTree(path), file_(std::move(file)) {}

  void list() override {
    for (std::uint64_t at = 0;;) {
      Header header{};
      if (at + kTarBlock > file_->size()) {  // the end must be marked, or missing samples could go unnoticed
        throw Error(ExitCode::data, fmt::format("{}: truncated tar: no end mark at byte {}", path(), at));
      }
      file_->read(at, std::as_writable_bytes(std::span(header)));
      if (is_zero(header)) break;
      if (!has_valid_checksum(header)) {
        throw Error(ExitCode::data, fmt::format("{}: damaged tar: byte {} should begin a header", path(), at));
      }
      at = add_member(header, at + kTarBlock);
    }
    sort();
  }

  [[nodiscard]] std::span<const std::byte> read(const Entry& entry, std::uint64_t from, std::uint64_t length,
                                                std::vector<std::byte>& scratch) const override {
    scratch.resize(length);
    file_->read(entry.offset + from, scratch);
    return scratch;
  }

 private:
  /// Returns the offset of the next header.
  std::uint64_t add_member(const Header& header, std::uint64_t data) {
    std::uint64_t size = number(header, 124, 12);
    const char type = static_cast<char>(header.at(156));
    const bool extends = type == 'x' || type == 'L' || type == 'g' || type == 'K';
    if (!extends && next_size_ != kUnset) size = next_size_;
    std::string name = next_name_.empty() ? plain_name(header) : next_name_;
    if (size > file_->size() - data) {
      throw Error(ExitCode::data, fmt::format("{}: truncated tar: {} ends at byte {}, the archive at byte {}", path(),
                                              name, data + size, file_->size()));
    }
    if (type == 'L') {
      const std::string padded = contents(data, size);
      next_name_ = padded.substr(0, padded.find('\0'));
    }
    if (type == 'x') read_pax(contents(data, size));
    if (!extends) {
      const bool folder = type == '5' || name.ends_with('/');
      if (folder) add_folder(name);
      if (!folder && (type == '0' || type == '\0' || type == '7')) add_file(name, data, size);
      next_name_.clear();
      next_size_ = kUnset;
    }
    return data + round_up(size, kTarBlock);
  }

  static std::string plain_name(const Header& header) {
    const std::string name(text(header, 0, 100));
    const std::string prefix(text(header, 257, 6) == "ustar" ? text(header, 345, 155) : "");
    return prefix.empty() ? name : prefix + "/" + name;
  }

  std::string contents(std::uint64_t at, std::uint64_t size) const {
    std::string out(size, '\0');
    file_->read(at, std::as_writable_bytes(std::span(out)));
    return out;
  }

  /// Records are "<length> <key>=<value>\n"; the length includes all of it.
  void read_pax(const std::string& records) {
    for (std::size_t at = 0; at < records.size();) {
      const auto space = records.find(' ', at), equals = records.find('=', at);
      const auto length = static_cast<std::size_t>(std::strtoull(records.c_str() + at, nullptr, 10));
      if (space == std::string::npos || equals == std::string::npos || at + length > records.size() ||
          equals + 2 > at + length) {
        throw Error(ExitCode::data, fmt::format("{}: damaged tar: a pax header cannot be read", path()));
      }
      const std::string key = records.substr(space + 1, equals - space - 1);
      const std::string value = records.substr(equals + 1, at + length - equals - 2);
      if (key == "path") next_name_ = value;
      if (key == "size") next_size_ = std::strtoull(value.c_str(), nullptr, 10);
      at += length;
    }
  }

  static constexpr std::uint64_t kUnset = ~std::uint64_t{0};
  std::unique_ptr<File> file_;
  std::string next_name_;
  std::uint64_t next_size_ = kUnset;
};

}  // namespace

bool is_plain_tar(const File& file) {
  Header header{};
  if (file.size() < kTarBlock) return false;
  file.read(0, std::as_writable_bytes(std::span(header)));
  return !is_zero(header) && has_valid_checksum(header);
}

std::unique_ptr<FileTree> open_plain_tar(std::unique_ptr<File> file, const std::string& path) {
  return std::make_unique<PlainTar>(std::move(file), path);
}

}  // namespace lockstep::data
