// A file of tokens that is being written: uint16 or uint32, little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

class TokenFile {
 public:
  /// Opens or creates it, and forgets what is behind the first `tokens` tokens of `width` bytes. Throws
  /// Error(cannot_create) if that fails; the others throw Error(infrastructure).
  TokenFile(std::string path, std::int64_t width, std::int64_t tokens);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  void append(const std::vector<std::int32_t>& tokens);
  /// Returns when all is on the disk.
  void flush();
  /// Flushes, and gives the file its name.
  void rename_to(const std::string& path);
  std::int64_t tokens() const { return tokens_; }

 private:
  [[noreturn]] void fail(const char* what) const;
  std::string path_;
  std::int64_t width_, tokens_;
  int file_ = -1;
};

}  // namespace lockstep::data
