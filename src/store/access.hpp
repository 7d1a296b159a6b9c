// Which server of the S3 protocol, and as whom: from the variables and files that all its clients read.
#pragma once

#include <string>

namespace lockstep::store {

struct Access {
  std::string endpoint;  ///< a URL without a slash at its end; empty: Amazon's, by region
  std::string region = "us-east-1";
  std::string key_id, secret, session_token;  ///< no key: requests are not signed, as for public buckets

  /// The URL of a bucket: a path of an endpoint of one's own, a host of Amazon's.
  [[nodiscard]] std::string bucket_url(const std::string& bucket) const;
};

/// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
/// AWS_SESSION_TOKEN; what they do not say, the section AWS_PROFILE ("default") of ~/.aws/credentials and ~/.aws/config
/// does, or of AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE. Throws Error(configuration) for half a key.
[[nodiscard]] Access access_from_environment();

}  // namespace lockstep::store
