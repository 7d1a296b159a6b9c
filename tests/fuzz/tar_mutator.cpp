// Mutates a tar, then corrects the checksum of each header that can be found.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz/mutator.hpp"

namespace {

constexpr std::size_t kBlock = 512, kSize = 124, kSizeLength = 12, kChecksum = 148, kChecksumLength = 8;

void set_checksum(std::uint8_t* header) {
  std::memset(header + kChecksum, ' ', kChecksumLength);
  unsigned sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) sum += header[i];
  std::snprintf(reinterpret_cast<char*>(header) + kChecksum, kChecksumLength, "%06o", sum);
}

}  // namespace

void lockstep::fuzz::repair(std::vector<std::uint8_t>& tar) {
  for (std::size_t at = 0; at + kBlock <= tar.size();) {
    std::uint8_t* header = tar.data() + at;
    if (std::all_of(header, header + kBlock, [](std::uint8_t byte) { return byte == 0; })) return;
    set_checksum(header);
    const std::string digits(reinterpret_cast<const char*>(header) + kSize, kSizeLength);
    const std::size_t size = std::strtoull(digits.c_str(), nullptr, 8);
    at += kBlock + std::min(size, tar.size()) / kBlock * kBlock + (size % kBlock != 0 ? kBlock : 0);
  }
}
