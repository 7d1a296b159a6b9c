// SHA-256 and HMAC, by OpenSSL's libcrypto.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  /// Lower-case hex of everything added so far; call once, the object is spent afterwards.
  [[nodiscard]] std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

[[nodiscard]] std::string sha256(std::string_view text);
[[nodiscard]] std::string sha256(std::span<const std::byte> bytes);

/// What only one who has the key can know of a text: HMAC-SHA256 (RFC 2104) in lower-case hex.
[[nodiscard]] std::string hmac_sha256(std::string_view key, std::string_view text);

}  // namespace lockstep
