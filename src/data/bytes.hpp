// Numbers and texts as little-endian bytes: packed files and index notes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/error.hpp"

namespace lockstep::data {

static_assert(std::endian::native == std::endian::little);

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Appends its length, then the text.
inline void append_text(std::string& out, std::string_view text) {
  append(out, static_cast<std::uint64_t>(text.size()));
  out.append(text);
}

/// Takes values from the front of bytes. Throws Error(data) with `too_short` if they end too early.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, const char* too_short) : rest_(bytes), too_short_(too_short) {}
  ByteReader(std::string_view bytes, const char* too_short) : ByteReader(std::as_bytes(std::span(bytes)), too_short) {}

  std::span<const std::byte> take(std::uint64_t length) {
    if (length > rest_.size()) throw Error(ExitCode::data, too_short_);
    const auto taken = rest_.first(length);
    rest_ = rest_.subspan(length);
    return taken;
  }
  template <class T>
  T value() {
    T out;
    std::memcpy(&out, take(sizeof(T)).data(), sizeof(T));
    return out;
  }
  std::string text(std::uint64_t length) {
    const auto taken = take(length);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  /// Reads what append_text() has written.
  std::string text() { return text(value<std::uint64_t>()); }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
  const char* too_short_;
};

}  // namespace lockstep::data
