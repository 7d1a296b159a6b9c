// Client: requests to a server of the S3 protocol (AWS Signature Version 4, which libcurl signs with).
//
// A request that fails for a while (no connection, a stall, a status 429 or 5xx) is repeated with growing pauses; what
// is still refused then is Error(infrastructure). What a repetition cannot change is Error(data): no permission, no
// such bucket. Every message names the object, the status and the server's words.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/access.hpp"
#include "store/location.hpp"

namespace lockstep::store {

struct ObjectInfo {
  std::string key;
  std::uint64_t size = 0;
  std::string version;  ///< the ETag, with its quotes: another one after each change of the object
};

struct Patience {
  int attempts = 6;
  std::chrono::milliseconds first_pause{250};  ///< then twice as long each time
  std::chrono::seconds stall{30};              ///< without a byte
};

/// Called whenever some bytes have come or gone. If it throws, the request ends with that exception and is not
/// repeated.
using OnBytes = std::function<void()>;

class Client {
 public:
  explicit Client(Access access = access_from_environment(), Patience patience = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Tells this client's server from others, for caches.
  [[nodiscard]] const Access& access() const { return access_; }

  // All thread-safe.

  /// nullopt if there is no such object.
  [[nodiscard]] std::optional<ObjectInfo> find(const Location& object) const;
  /// The same, if it must be there; Error(data) if not.
  [[nodiscard]] ObjectInfo existing(const Location& object) const;
  /// The objects whose keys begin with `folder`'s key and a slash (all, if it is the bucket), in byte order; at most
  /// `limit`, if that is not 0.
  [[nodiscard]] std::vector<ObjectInfo> list(const Location& folder, std::size_t limit = 0) const;
  /// Fills `out`, which must not be empty, with the bytes from `offset`; returns the version that they are of.
  [[nodiscard]] std::string read(const Location& object, std::uint64_t offset, std::span<std::byte> out,
                                 const OnBytes& on_bytes = {}) const;
  /// Creates or replaces an object of at most 5 GiB: readers see the old or the new one.
  void write(const Location& object, std::span<const std::byte> bytes, const OnBytes& on_bytes = {}) const;
  void remove(const Location& object) const;

 private:
  struct Handle;
  struct Request;
  struct Answer;
  [[nodiscard]] Answer send(const Request& request) const;
  [[nodiscard]] Answer try_once(const Request& request) const;
  [[noreturn]] void refuse(const Request& request, const Answer& answer) const;
  [[nodiscard]] std::unique_ptr<Handle> take_handle() const;

  Access access_;
  Patience patience_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Handle>> idle_;  ///< with their connections
};

/// The client of this process, made at the first call. Throws as access_from_environment() does.
[[nodiscard]] const Client& client();

}  // namespace lockstep::store
