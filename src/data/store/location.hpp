// Where an object lies: "s3://bucket/key", as every client of the S3 protocol writes it.
#pragma once

#include <string>

namespace lockstep::store {

struct Location {
  std::string bucket;
  std::string key;  ///< without a slash at either end; empty: the whole bucket

  std::string text() const { return "s3://" + bucket + (key.empty() ? "" : "/" + key); }
};

/// Throws Error(configuration) for a path without a bucket.
[[nodiscard]] Location parse_location(const std::string& path);

}  // namespace lockstep::store
