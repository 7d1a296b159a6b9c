// The tags of the reducers' messages: the upper half of the callers' range.
#pragma once

#include "lockstep/error.hpp"

namespace lockstep::comm {

inline constexpr int kFirstReduceTag = 1 << 19;
inline constexpr int kTagsPerBucket = 64;
inline constexpr int kMaxBuckets = kFirstReduceTag / kTagsPerBucket - 1;
inline constexpr int kScalarTag = (1 << 20) - 1;

/// A slice of the sender's partial sum number `root`.
[[nodiscard]] inline int partial_tag(int bucket, int root) {
  LOCKSTEP_CHECK(bucket < kMaxBuckets && root < kTagsPerBucket - 1, "too many buckets or partial sums for the tags");
  return kFirstReduceTag + bucket * kTagsPerBucket + root;
}

/// The sender's reduced slice.
[[nodiscard]] inline int reduced_tag(int bucket) {
  return kFirstReduceTag + (bucket + 1) * kTagsPerBucket - 1;
}

}  // namespace lockstep::comm
