// Memory shared by all ranks of one host: each owns one block and can read and write those of its peers.
//
// Between processes, a block is an unnamed file in /dev/shm that peers receive as an open file, so nothing is left
// behind whenever a rank dies. Between threads of one process, and for a rank that is alone on its host, it is ordinary
// memory.
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

/// When a block's memory is allocated: at once, so that a small /dev/shm causes an error here and not a SIGBUS later;
/// or page by page, on first write, where release_pages() can free some again.
enum class Pages : std::uint8_t { allocated, when_written };

/// Collective over all ranks of the job; sizes may differ. `prepare` is called on the rank's own block before any peer
/// can see it.
[[nodiscard]] std::unique_ptr<HostMemory> map_host_memory(Communicator& communicator, std::size_t bytes,
                                                          const std::function<void(std::byte*)>& prepare,
                                                          const Operation& operation, Pages pages = Pages::allocated);

/// Allocates the pages that are entirely within the range, so that it can be written. Throws Error(infrastructure) if
/// /dev/shm has no room for them.
void take_pages(std::span<std::byte> bytes);
/// Frees them for all processes that have mapped them: their content is lost.
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
  /// Creates a segment. Throws Error(infrastructure), as open() does.
  [[nodiscard]] static SharedSegment create(std::size_t bytes, Pages pages = Pages::allocated);
  /// Opens a peer's, by the name of its FileServer.
  [[nodiscard]] static SharedSegment open(const std::string& server, std::size_t bytes,
                                          std::chrono::milliseconds timeout);
  [[nodiscard]] std::byte* data() const { return data_; }
  /// After create(): its file, for a FileServer. The memory stays mapped without it.
  [[nodiscard]] FileHandle take_file() { return std::move(file_); }

 private:
  FileHandle file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::comm
