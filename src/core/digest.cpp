#include "core/digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

using Bytes = std::array<unsigned char, 32>;

std::string hex_of(const Bytes& digest) {
  std::string text;
  for (const auto byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> handle{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  LOCKSTEP_CHECK(context_->handle && EVP_DigestInit_ex(context_->handle.get(), EVP_sha256(), nullptr) == 1, "SHA-256");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::add(std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(EVP_DigestUpdate(context_->handle.get(), bytes.data(), bytes.size()) == 1, "SHA-256");
}
void Sha256::add(std::string_view text) {
  add(std::as_bytes(std::span(text)));
}

std::string Sha256::hex() {
  Bytes digest{};
  LOCKSTEP_CHECK(EVP_DigestFinal_ex(context_->handle.get(), digest.data(), nullptr) == 1, "SHA-256");
  return hex_of(digest);
}

std::string sha256(std::string_view text) {
  return sha256(std::as_bytes(std::span(text)));
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  Bytes digest{};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  LOCKSTEP_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(), digest.data(),
                      nullptr) != nullptr,
                 "HMAC");
  return hex_of(digest);
}

}  // namespace lockstep
