// Memory that all ranks of one host see: each owns one block and can read and write those of its peers.
//
// Between processes a block is POSIX shared memory: allocated at once (so that a small /dev/shm is an error
// here and not a SIGBUS later), mapped by all, then unlinked, so that nothing is left behind when a rank dies.
// Between threads of one process, and for a rank that is alone on its host, it is plain memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/communicator.hpp"

namespace lockstep::comm {

class HostMemory {
 public:
  virtual ~HostMemory() = default;
  /// The block of a rank of this host, by local rank; 64-byte aligned, not cleared.
  [[nodiscard]] virtual std::byte* block(int local_rank) const = 0;
};

/// Collective over all ranks of the job; sizes may differ. `prepare` is called on the own block before any peer
/// can see it.
[[nodiscard]] std::unique_ptr<HostMemory> map_host_memory(Communicator& communicator, std::size_t bytes,
                                                          const std::function<void(std::byte*)>& prepare,
                                                          const Operation& operation);

/// One mapped segment of POSIX shared memory.
class SharedSegment {
 public:
  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();
  /// Both throw Error(infrastructure).
  [[nodiscard]] static SharedSegment create(const std::string& name, std::size_t bytes);
  [[nodiscard]] static SharedSegment open(const std::string& name, std::size_t bytes);
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::comm
