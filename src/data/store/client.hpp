// Client: requests to a server of the S3 protocol (AWS Signature Version 4, which libcurl signs with).
//
// A request that fails for a while (no connection, a stall, a status 429 or 5xx) is repeated with growing pauses; what
// is still refused then is Error(infrastructure), as is a key that has expired. What a repetition cannot change is
// Error(data): no permission, no such bucket. Every message names the object, the status and the server's words.
//
// Requests are signed with the server's time, and with the key that is good now.
#pragma once

#include <atomic>
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

#include "data/store/access.hpp"
#include "data/store/credentials.hpp"

namespace lockstep::store {

struct ObjectInfo {
  std::string key;
  std::uint64_t size = 0;
  std::string version;      ///< the ETag, with its quotes: another one after each change of the object
  std::string sha256 = {};  ///< of what write() has written; from find() alone
};

struct Patience {
  /// How long a request is repeated. LOCKSTEP_STORE_PATIENCE, in seconds.
  std::chrono::milliseconds in_all{300'000};
  std::chrono::milliseconds first_pause{250};  ///< then twice as long each time, up to `longest_pause`
  std::chrono::milliseconds longest_pause{15'000};
  std::chrono::seconds stall{30};  ///< without a byte
};

/// Throws Error(configuration) for a value that is no number.
[[nodiscard]] Patience patience_from_environment();

/// Called whenever some bytes have come or gone, for each answer, and while a request waits to be repeated. If it
/// throws, the request ends with that exception.
using OnBytes = std::function<void()>;

class Client {
 public:
  /// Objects of two of these `parts` and more are written and read in parts, several at once.
  static constexpr std::uint64_t kPartBytes = std::uint64_t{32} << 20;

  explicit Client(Access access = access_from_environment(), Patience patience = patience_from_environment(),
                  std::uint64_t part_bytes = kPartBytes);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Tells this client's server from others, for caches.
  const Access& access() const { return access_; }

  // All thread-safe.

  /// nullopt if there is no such object.
  std::optional<ObjectInfo> find(const ObjectLocation& object, const OnBytes& on_bytes = {}) const;
  /// The same, if it must be there; Error(data) if not.
  ObjectInfo existing(const ObjectLocation& object) const;
  /// The objects whose keys begin with `folder`'s key and a slash (all, if it is the bucket), in byte order; at most
  /// `limit`, if that is not 0.
  std::vector<ObjectInfo> list(const ObjectLocation& folder, std::size_t limit = 0, const OnBytes& on_bytes = {}) const;
  /// Fills `out`, which must not be empty, with the bytes from `offset`; returns the version that they are of.
  std::string read(const ObjectLocation& object, std::uint64_t offset, std::span<std::byte> out,
                   const OnBytes& on_bytes = {}) const;
  /// The same for all bytes of a large object; false: it was replaced meanwhile.
  bool read_whole(const ObjectLocation& object, const std::string& version, std::span<std::byte> out,
                  const OnBytes& on_bytes = {}) const;
  /// Creates or replaces an object: readers see the old or the new one.
  void write(const ObjectLocation& object, std::span<const std::byte> bytes, const OnBytes& on_bytes = {}) const;
  void remove(const ObjectLocation& object, const OnBytes& on_bytes = {}) const;

 private:
  struct Handle;
  struct Request;
  struct Answer;
  Answer send(const Request& request) const;
  Answer try_once(const Request& request) const;
  bool can_be_mended(const Answer& answer) const;
  [[noreturn]] void refuse(const Request& request, const Answer& answer) const;
  void write_in_parts(const ObjectLocation& object, std::span<const std::byte> bytes, const std::string& digest,
                      const OnBytes& on_bytes) const;
  std::unique_ptr<Handle> take_handle() const;

  Access access_;
  Patience patience_;
  std::uint64_t part_bytes_;
  mutable Credentials credentials_;
  mutable std::atomic<std::int64_t> clock_offset_{0};  ///< seconds that the server's clock is ahead
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Handle>> idle_;  ///< with their connections
};

/// The client of this process, made at the first call. Throws as access_from_environment() does.
[[nodiscard]] const Client& client();

}  // namespace lockstep::store
