#include "data/readers/token_fingerprints.hpp"

#include <deque>

#include "lockstep/random.hpp"

namespace lockstep::data {

std::vector<TokenFingerprint> token_fingerprints(std::span<const std::int32_t> tokens, std::int64_t window) {
  constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;  // odd, so that no token's part of the sum is lost
  std::uint64_t oldest = 1;                            // the factor of a run's first token
  for (std::int64_t i = 1; i < kFingerprintTokens; ++i) oldest *= kBase;
  const auto word = [&](std::int64_t at) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(tokens[at])) + 1;
  };
  std::vector<TokenFingerprint> found;
  std::deque<TokenFingerprint> least;  // ascending: the first is the smallest of the window
  std::uint64_t sum = 0;
  for (std::int64_t last = 0; last < std::ssize(tokens); ++last) {
    if (last >= kFingerprintTokens) sum -= oldest * word(last - kFingerprintTokens);
    sum = sum * kBase + word(last);
    const TokenFingerprint own{last - kFingerprintTokens + 1, mix(sum, 0)};
    if (own.first < 0) continue;
    while (!least.empty() && least.back().hash >= own.hash) least.pop_back();
    least.push_back(own);
    if (least.front().first <= own.first - window) least.pop_front();
    const bool is_new = found.empty() || found.back().first != least.front().first;
    if (own.first >= window - 1 && is_new) found.push_back(least.front());
  }
  return found;
}

}  // namespace lockstep::data
