// How much of a data set indexing reads.
#pragma once

#include <cstdint>

namespace lockstep::data {

/// Sets of encoded images up to this size are decoded once when they are indexed.
inline constexpr std::uint64_t kFullCheckBytes = std::uint64_t{64} << 20;

/// Sets up to this size are read whole once when they are indexed, and their content is in the digest. Of larger
/// ones the digest takes names, sizes, labels and, where records have one length, kSpotChecks spots; the rest is left
/// to content_digest().
inline constexpr std::uint64_t kFullDigestBytes = std::uint64_t{256} << 20;
inline constexpr std::int64_t kSpotChecks = 64;

}  // namespace lockstep::data
