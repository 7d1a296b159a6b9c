// Which server of the S3 protocol, and as whom: from the variables and files that all its clients read.
#pragma once

#include <string>

#include "data/store/credentials.hpp"

namespace lockstep::store {

struct Access {
  std::string endpoint = {};  ///< a URL without a slash at its end; empty: Amazon's, by region
  std::string region = "us-east-1";
  Credentials::Find find_key = [] { return Key(); };

  /// The URL of a bucket: a path of an endpoint of one's own, a host of Amazon's.
  std::string bucket_url(const std::string& bucket) const;
};

/// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION and AWS_DEFAULT_REGION; what they do not say, the section
/// AWS_PROFILE ("default") of ~/.aws/credentials and ~/.aws/config does, or of AWS_SHARED_CREDENTIALS_FILE and
/// AWS_CONFIG_FILE. The key: find_key().
[[nodiscard]] Access access_from_environment();

// Where an object lies: "s3://bucket/key", as every client of the S3 protocol writes it.

struct ObjectLocation {
  std::string bucket;
  std::string key;  ///< without a slash at either end; empty: the whole bucket

  std::string text() const { return "s3://" + bucket + (key.empty() ? "" : "/" + key); }
};

/// Throws Error(configuration) for a path without a bucket.
[[nodiscard]] ObjectLocation parse_location(const std::string& path);

}  // namespace lockstep::store
