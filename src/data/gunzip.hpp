// gzip, verified: its sums are compared, and what follows is another member, zeros, or damage.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <span>
#include <string>

namespace lockstep::data {

/// Unpacks a gzip file, of one member or several, piece by piece.
class Gunzip {
 public:
  /// `path`: for messages.
  explicit Gunzip(std::string path);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Takes bytes from the front of `packed`, and fills `out` from its front; returns how many bytes. Less than all of
  /// `out`: more packed bytes are needed. Throws Error(data) for damage.
  [[nodiscard]] std::size_t unpack(std::span<const std::byte>& packed, std::span<std::byte> out);
  /// There are no more packed bytes. Throws Error(data) if a member is not at its end.
  void finish() const;

 private:
  std::string path_;
  z_stream stream_{};
  bool in_member_ = false, began_ = false, padded_ = false;
};

}  // namespace lockstep::data
