// The key that requests are signed with. Long runs outlive keys of an hour, so it is looked for again before it ends,
// and when a server has refused it.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

namespace lockstep::store {

struct Key {
  std::string id, secret, session_token;  ///< no id: requests are not signed, as for public buckets
  std::chrono::system_clock::time_point expires = std::chrono::system_clock::time_point::max();

  bool operator==(const Key&) const = default;
};

/// Where Amazon's other clients look, in their order: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; a
/// role that a token in a file stands for (AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, asked of STS); the section of
/// ~/.aws/credentials, and a role of the one in ~/.aws/config; a container's service
/// (AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI); with `on_amazon`, the role of the instance (IMDSv2). Throws
/// Error(configuration) for half a key or an address that a key must not be asked of, Error(infrastructure) if a
/// service that should have one does not answer.
[[nodiscard]] Key find_key(const std::string& region, bool on_amazon);

/// Thread-safe.
class Credentials {
 public:
  using Find = std::function<Key()>;
  explicit Credentials(Find find) : find_(std::move(find)) {}

  /// Looked for at the first call, and again from five minutes before it ends. Throws as `find` does, but not while the
  /// last one is good.
  [[nodiscard]] Key key();
  /// A server has refused that one. Returns whether there is another one now.
  [[nodiscard]] bool renew(const Key& refused);

 private:
  std::mutex mutex_;
  Find find_;
  Key key_;
  bool found_ = false;
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace lockstep::store
