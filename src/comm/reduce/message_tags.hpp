// The tags of the exchange's messages: the upper half of the callers' range.
#pragma once

#include "lockstep/error.hpp"

namespace lockstep::comm {

inline constexpr int kFirstExchangeTag = 1 << 19;
inline constexpr int kTagsPerBucket = 64;
inline constexpr int kMostBuckets = kFirstExchangeTag / kTagsPerBucket - 1;
inline constexpr int kScalarTag = (1 << 20) - 1;

/// A slice of the sender's partial sum number `root`.
[[nodiscard]] inline int partial_tag(int bucket, int root) {
  LOCKSTEP_CHECK(bucket < kMostBuckets && root < kTagsPerBucket - 1, "too many buckets or partial sums for the tags");
  return kFirstExchangeTag + bucket * kTagsPerBucket + root;
}

/// The sender's reduced slice.
[[nodiscard]] inline int reduced_tag(int bucket) {
  return kFirstExchangeTag + (bucket + 1) * kTagsPerBucket - 1;
}

}  // namespace lockstep::comm
