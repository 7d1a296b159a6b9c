// Random numbers: Philox 4x32-10, a counter-based generator. The same key and counter give the same four words
// everywhere, so no number depends on who draws it, or in which order.
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep {

using PhiloxWords = std::array<std::uint32_t, 4>;

[[nodiscard]] constexpr PhiloxWords philox(std::uint64_t key, const PhiloxWords& counter) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  std::uint32_t key0 = key, key1 = key >> 32;
  PhiloxWords c = counter;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMultiplier0 * c[0], p1 = kMultiplier1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<std::uint32_t>(p0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return c;
}

/// FNV-1a: a stable hash of a name, for random streams.
[[nodiscard]] constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// Mixes two 64-bit words into a key (the finaliser of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a + 0x9E3779B97F4A7C15 * (b + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// Uniform in [0, 1): the top 24 bits.
[[nodiscard]] constexpr float to_unit(std::uint32_t word) {
  return (word >> 8) * 0x1p-24F;
}

/// The random words for one purpose, such as augmenting one sample. Streams that differ in key, id or substream are
/// independent.
class RandomStream {
 public:
  RandomStream(std::uint64_t key, std::uint64_t id, std::uint32_t substream = 0)
      : key_(key), counter_{0, substream, static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(id >> 32)} {}

  std::uint32_t word() {
    if (used_ == 4) {
      words_ = philox(key_, counter_);
      ++counter_[0];
      used_ = 0;
    }
    return words_[used_++];
  }
  float unit() { return to_unit(word()); }  ///< uniform in [0, 1)
  float between(float low, float high) { return low + (high - low) * unit(); }
  /// Uniform in 0 ... bound - 1, up to a bias below 2^-32 * bound.
  std::uint32_t below(std::uint32_t bound) { return (std::uint64_t{word()} * bound) >> 32; }

 private:
  std::uint64_t key_;
  PhiloxWords counter_, words_{};
  std::size_t used_ = 4;
};

}  // namespace lockstep
