#include "telemetry/crc32c.hpp"

#include <array>
#include <bit>

namespace lockstep::telemetry {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;
constexpr std::uint32_t kMask = 0xA282EAD8;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

constexpr auto kTable = make_table();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t rest = ~std::uint32_t{0};
  for (const char byte : bytes) rest = kTable.at((rest ^ static_cast<std::uint8_t>(byte)) & 0xFF) ^ (rest >> 8);
  return ~rest;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + kMask;
}

}  // namespace lockstep::telemetry
