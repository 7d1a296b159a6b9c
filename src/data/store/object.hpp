// Object: bytes at offsets of one version of an object, through the cache of this host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/store/block_cache.hpp"
#include "data/store/client.hpp"

namespace lockstep::store {

/// 64 bits of a version's hash.
[[nodiscard]] std::uint64_t fingerprint_of(const std::string& version);

class Object {
 public:
  /// Bytes of a block. A sample of an archive costs at most two requests, and its neighbours then none.
  static constexpr std::uint64_t kBlockBytes = std::uint64_t{4} << 20;

  /// Throws Error(data) if there is no such object.
  explicit Object(const std::string& path, const Client& from = client(), BlockCache& cache = block_cache())
      : Object(path, from.existing(parse_location(path)), from, cache) {}
  /// Of which size and version are known: nothing is asked.
  Object(const std::string& path, std::uint64_t size, std::uint64_t fingerprint, const Client& from = client(),
         BlockCache& cache = block_cache());

  std::uint64_t size() const { return size_; }
  /// offset + out.size() must not exceed size(). Thread-safe. Throws Error(data) if another version is there by now,
  /// and as Client::read() does.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  Object(const std::string& path, const ObjectInfo& found, const Client& from, BlockCache& cache)
      : Object(path, found.size, fingerprint_of(found.version), from, cache) {}
  void fetch(std::uint64_t offset, std::span<std::byte> out) const;
  ObjectLocation location_;
  const Client& client_;
  BlockCache& cache_;
  std::uint64_t size_, fingerprint_;
  std::string name_;  ///< of its blocks; "": none are kept
};

}  // namespace lockstep::store
