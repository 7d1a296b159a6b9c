// Memory that all ranks of one host see: each owns one block and can read and write those of its peers.
//
// Between processes a block is a file in /dev/shm. It has no name; peers get it as an open file, so nothing is left
// behind when a rank dies, whenever.
// Between threads of one process, and for a rank that is alone on its host, it is plain memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/file_server.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

class HostMemory {
 public:
  virtual ~HostMemory() = default;
  /// The block of a rank of this host, by local rank; 64-byte aligned, not cleared.
  [[nodiscard]] virtual std::byte* block(int local_rank) const = 0;
};

/// When a block takes memory: at once, so that a small /dev/shm is an error here and not a SIGBUS later; or page by
/// page, as it is written, where release_pages() gives some back.
enum class Pages : std::uint8_t { allocated, when_written };

/// Collective over all ranks of the job; sizes may differ. `prepare` is called on the own block before any peer
/// can see it.
[[nodiscard]] std::unique_ptr<HostMemory> map_host_memory(Communicator& communicator, std::size_t bytes,
                                                          const std::function<void(std::byte*)>& prepare,
                                                          const Operation& operation, Pages pages = Pages::allocated);

/// Takes the pages that lie in the range as a whole, so that it can be written. Throws Error(infrastructure) where
/// there is no room for them in /dev/shm.
void take_pages(std::span<std::byte> bytes);
/// Gives them back, for all who have mapped them: what stood there is lost.
void release_pages(std::span<std::byte> bytes);

/// One mapped segment of shared memory.
class SharedSegment {
 public:
  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();
  /// A new one. Throws Error(infrastructure), as open() does.
  [[nodiscard]] static SharedSegment create(std::size_t bytes, Pages pages = Pages::allocated);
  /// A peer's, by the name of its FileServer.
  [[nodiscard]] static SharedSegment open(const std::string& server, std::size_t bytes,
                                          std::chrono::milliseconds timeout);
  [[nodiscard]] std::byte* data() const { return data_; }
  /// Of a new one: its file, for a FileServer. The memory stays mapped without it.
  [[nodiscard]] FileHandle take_file() { return std::move(file_); }

 private:
  FileHandle file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::comm
