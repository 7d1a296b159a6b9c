#include "data/store/checksums.hpp"

#include <zlib.h>

#include <algorithm>

namespace lockstep::store {

std::vector<std::uint32_t> checksums_of(std::span<const std::byte> bytes, std::uint64_t piece) {
  std::vector<std::uint32_t> sums;
  sums.reserve(pieces_of(bytes.size(), piece));
  while (!bytes.empty()) {
    const auto next = bytes.first(std::min<std::uint64_t>(piece, bytes.size()));
    sums.push_back(crc32_z(0, reinterpret_cast<const Bytef*>(next.data()), next.size()));
    bytes = bytes.subspan(next.size());
  }
  return sums;
}

}  // namespace lockstep::store
