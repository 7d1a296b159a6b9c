// Fingerprints of a sequence of tokens by winnowing: sequences that have a long run of tokens in common have a
// fingerprint in common, wherever the run lies (Schleimer, Wilkerson, Aiken, "Winnowing", 2003).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::data {

/// Tokens of which a fingerprint is a hash: enough that no two texts have them in common by chance.
inline constexpr std::int64_t kFingerprintTokens = 32;

struct TokenFingerprint {
  std::int64_t first = 0;  ///< position of the first of its tokens
  std::uint64_t hash = 0;
};

/// Of each `window` successive hashes the smallest one, each once: a run of kFingerprintTokens + window - 1 tokens has
/// at least one. None of a shorter sequence.
[[nodiscard]] std::vector<TokenFingerprint> token_fingerprints(std::span<const std::int32_t> tokens,
                                                               std::int64_t window);

}  // namespace lockstep::data
