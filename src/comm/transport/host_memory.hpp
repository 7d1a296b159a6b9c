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
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/file_server.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Bytes [begin, end) of a block.
struct ByteRange {
  std::size_t begin = 0, end = 0;
};

class HostMemory {
 public:
  virtual ~HostMemory() = default;
  /// The block of a rank of this host, by local rank; 64-byte aligned, not cleared.
  virtual std::byte* block(int local_rank) const = 0;
  /// Of a block with HostBlock::written: allocates every page that the range touches, so that it can be written.
  /// Throws Error(infrastructure) if /dev/shm has no room for them.
  virtual void take_pages(int /*local_rank*/, ByteRange /*range*/) const {}
  /// Frees the pages that are entirely within the range, for all ranks of the host: their content is lost.
  void release_pages(int local_rank, ByteRange range) const;
};

/// What a rank shares with the ranks of its host.
struct HostBlock {
  std::size_t bytes = 0;
  /// Called on the rank's own block before any peer can see it.
  std::function<void(std::byte*)> prepare = [](std::byte* /*block*/) {};
  /// What the offsets in all blocks follow from, as text; at most kMaxLayout characters. Each rank computes the offsets
  /// in its peers' blocks itself, so it must be the same on all ranks of a host.
  std::string layout = {};
  /// For messages.
  std::string use = "the all-reduce of gradients";
  /// What may be written without take_pages(); none: everything. It is allocated at once, so that a small /dev/shm
  /// causes an error here and not a SIGBUS later.
  std::optional<std::vector<ByteRange>> written = {};

  /// Each rank reads all of its peers' blocks sooner or later: their pages are mapped at once, so that a rank's
  /// resident memory does not depend on what it has read so far.
  bool all_read = false;

  static constexpr std::size_t kMaxLayout = 159;
};

/// Many numbers as a part of HostBlock::layout.
[[nodiscard]] std::string digest_of_layout(std::span<const std::uint64_t> numbers);

/// Whether this rank's blocks are in /dev/shm: it has peers on its host, in other processes.
[[nodiscard]] bool shares_memory_of_host(Communicator& communicator);

/// Collective over all ranks of the job; sizes may differ. Throws on all ranks if one of them has no room, or if two
/// ranks of a host have different layouts.
[[nodiscard]] std::unique_ptr<HostMemory> map_host_memory(Communicator& communicator, const HostBlock& block,
                                                          const Operation& operation);

using HostMemories = std::vector<std::unique_ptr<HostMemory>>;

/// The same for several blocks of each rank, in as many messages as for one.
[[nodiscard]] HostMemories map_host_memories(Communicator& communicator, std::span<const HostBlock> blocks,
                                             const Operation& operation);

/// Collective: maps other blocks in place of `memory`, which may be null (on all ranks). The old blocks are freed on
/// all ranks before a new one is allocated, so /dev/shm never holds both. Nothing may refer to the old ones any more.
void remap_host_memory(std::unique_ptr<HostMemory>& memory, Communicator& communicator, const HostBlock& block,
                       const Operation& operation);

/// One mapped segment of shared memory.
class SharedSegment {
 public:
  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();
  /// Creates a segment and allocates `written`, or all of it. Throws Error(infrastructure), as open() does.
  [[nodiscard]] static SharedSegment create(std::size_t bytes, const std::string& use,
                                            const std::optional<std::vector<ByteRange>>& written = {});
  /// Opens a peer's, by the name of its FileServer.
  [[nodiscard]] static SharedSegment open(const std::string& server, std::size_t bytes,
                                          std::chrono::milliseconds timeout, bool all_read = false);
  std::byte* data() const { return data_; }
  /// Another handle of its file, for a FileServer.
  FileHandle duplicate_file() const;
  /// The memory stays mapped without its file, which take_pages() needs.
  void close_file() { file_.reset(); }
  /// As HostMemory::take_pages().
  void take_pages(ByteRange range, const std::string& use) const;

 private:
  FileHandle file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::comm
