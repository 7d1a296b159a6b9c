#include "comm/transport/host_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "comm/transport/group.hpp"
#include "comm/transport/thread_communicator.hpp"
#include "comm/transport/topology.hpp"
#include "core/digest.hpp"
#include "lockstep/error.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::comm {

namespace {

// Ordinary memory.
class HeapMemory final : public HostMemory {
 public:
  std::byte* block(int local_rank) const override { return blocks_.at(local_rank)->data(); }
  std::vector<std::shared_ptr<AlignedBytes>> blocks_;
};

class SharedMemory final : public HostMemory {
 public:
  explicit SharedMemory(std::string use) : use_(std::move(use)) {}
  std::byte* block(int local_rank) const override { return segment(local_rank).data(); }
  void take_pages(int local_rank, ByteRange range) const override { segment(local_rank).take_pages(range, use_); }
  std::vector<SharedSegment> segments_;

 private:
  const SharedSegment& segment(int local_rank) const { return segments_.at(local_rank); }
  std::string use_;
};

// What each rank tells the others about its block; a failure is sent too, so that all ranks end with its message.
struct Announcement {
  std::array<char, HostBlock::kMaxLayout + 1> layout{};
  const std::shared_ptr<AlignedBytes>* block = nullptr;  ///< between threads: the block itself
  std::array<char, 64> server{};                         ///< between processes: who hands out its file
  std::uint64_t bytes = 0, allocated = 0;                ///< all; of these, what is allocated at once
  std::array<char, 512> error{};
};

/// By rank, then by block.
std::vector<Announcement> gather(Communicator& communicator, const std::vector<Announcement>& mine,
                                 const Operation& operation) {
  std::vector<Announcement> all(communicator.size() * mine.size());
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), operation);
  return all;
}

template <std::size_t N>
void write(std::array<char, N>& place, const std::string& text) {
  std::copy_n(text.begin(), std::min(text.size(), N - 1), place.begin());
}

// What one rank finds free depends on how much its neighbours have allocated by then.
std::string needed_by_host(const Topology& topology, const std::vector<Announcement>& all, std::size_t of_rank,
                           int rank) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (topology.same_host(i / of_rank, rank)) bytes += all[i].allocated;
  }
  if (bytes == 0) return "";
  return fmt::format("; the {} ranks of this host need {:.1f} MiB together", topology.local_size(rank),
                     bytes / (1024.0 * 1024.0));
}

void throw_any_error(const Communicator& communicator, const std::vector<Announcement>& all) {
  const Topology& topology = communicator.topology();
  const std::size_t of_rank = all.size() / communicator.size();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& error = all[i].error;
    if (error[0] == '\0') continue;
    const int rank = i / of_rank;
    throw Error(ExitCode::infrastructure, fmt::format("{}: {}{}", describe(topology, rank), error.data(),
                                                      needed_by_host(topology, all, of_rank, rank)));
  }
}

void compare_layouts(const Communicator& communicator, const std::vector<Announcement>& all,
                     std::span<const HostBlock> blocks) {
  const Hosts hosts(communicator.topology());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int r = i / blocks.size();
    const std::size_t k = i % blocks.size();
    const int first = hosts.ranks(hosts.host_of(r)).front();
    const auto& expected = all[first * blocks.size() + k].layout;
    const auto& found = all[i].layout;
    if (found == expected) continue;
    throw Error(
        ExitCode::internal,
        fmt::format("memory for {}: its layout is '{}' on {}, but '{}' on {}. This is a bug in lockstep; please "
                    "report it.",
                    blocks[k].use, expected.data(), describe(communicator.topology(), first), found.data(),
                    describe(communicator.topology(), r)));
  }
}

std::uint64_t allocated_at_once(const HostBlock& block) {
  if (!block.written) return block.bytes;
  std::uint64_t bytes = 0;
  for (const ByteRange& range : *block.written) bytes += range.end - range.begin;
  return bytes;
}

std::vector<Announcement> announcements_of(std::span<const HostBlock> blocks) {
  std::vector<Announcement> mine(blocks.size());
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    LOCKSTEP_CHECK(blocks[k].layout.size() <= HostBlock::kMaxLayout, "a layout is a short text");
    mine[k].bytes = blocks[k].bytes;
    write(mine[k].layout, blocks[k].layout);
  }
  return mine;
}

std::shared_ptr<AlignedBytes> make_ordinary(const HostBlock& block) {
  auto memory = std::make_shared<AlignedBytes>(block.bytes);
  block.prepare(memory->data());
  return memory;
}

// Threads of one process exchange pointers to their blocks.
HostMemories share_between_threads(Communicator& communicator, std::span<const HostBlock> blocks,
                                   const Operation& operation) {
  auto mine = announcements_of(blocks);
  std::vector<std::shared_ptr<AlignedBytes>> own;
  for (const HostBlock& block : blocks) own.push_back(make_ordinary(block));
  for (std::size_t k = 0; k < blocks.size(); ++k) mine[k].block = &own[k];
  const auto all = gather(communicator, mine, operation);
  HostMemories memories;
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    auto memory = std::make_unique<HeapMemory>();
    for (int r = 0; r < communicator.size(); ++r) {
      if (!communicator.topology().same_host(r, communicator.rank())) continue;
      memory->blocks_.push_back(*all[r * blocks.size() + k].block);
    }
    memories.push_back(std::move(memory));
  }
  communicator.barrier(operation);  // `own` must live until all have copied it
  compare_layouts(communicator, all, blocks);
  return memories;
}

/// Block `k` of each of this host's ranks. Collective only in that the owners must still serve their files.
std::unique_ptr<HostMemory> open_all(const Communicator& communicator, std::span<const HostBlock> blocks, std::size_t k,
                                     SharedSegment own, const std::vector<Announcement>& all,
                                     const Operation& operation) {
  const HostBlock& block = blocks[k];
  auto memory = std::make_unique<SharedMemory>(block.use);
  for (int r = 0; r < communicator.size(); ++r) {
    if (!communicator.topology().same_host(r, communicator.rank())) continue;
    const Announcement& peer = all[r * blocks.size() + k];
    memory->segments_.push_back(r == communicator.rank() ? std::exchange(own, SharedSegment())
                                                         : SharedSegment::open(peer.server.data(), peer.bytes,
                                                                               operation.timeout, block.all_read));
    if (!block.written) memory->segments_.back().close_file();
  }
  return memory;
}

HostMemories share_between_processes(Communicator& communicator, std::span<const HostBlock> blocks,
                                     const Operation& operation) {
  const bool shares = shares_memory_of_host(communicator);
  auto mine = announcements_of(blocks);
  std::vector<SharedSegment> own;
  std::vector<std::unique_ptr<FileServer>> servers;
  HostMemories memories;
  for (std::size_t k = 0; shares && k < blocks.size(); ++k) mine[k].allocated = allocated_at_once(blocks[k]);
  try {
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      const HostBlock& block = blocks[k];
      if (shares) {
        own.push_back(SharedSegment::create(block.bytes, block.use, block.written));
        block.prepare(own.back().data());
        servers.push_back(std::make_unique<FileServer>(own.back().duplicate_file()));
        write(mine[k].server, servers.back()->name());
      } else {
        auto ordinary = std::make_unique<HeapMemory>();
        ordinary->blocks_.push_back(make_ordinary(block));
        memories.push_back(std::move(ordinary));
      }
    }
  } catch (const Error& error) {
    write(mine.front().error, error.what());
  }
  const auto all = gather(communicator, mine, operation);
  std::vector<Announcement> result(1);
  try {
    throw_any_error(communicator, all);
    for (std::size_t k = 0; shares && k < blocks.size(); ++k) {
      memories.push_back(open_all(communicator, blocks, k, std::move(own[k]), all, operation));
    }
  } catch (const Error& error) {
    write(result.front().error, error.what());
  }
  const auto results = gather(communicator, result, operation);  // all have mapped it, or one reports why not
  throw_any_error(communicator, all);
  compare_layouts(communicator, all, blocks);
  throw_any_error(communicator, results);
  return memories;
}

bool are_threads(Communicator& communicator) {
  auto* const group = dynamic_cast<GroupCommunicator*>(&communicator);
  return dynamic_cast<ThreadCommunicator*>(group == nullptr ? &communicator : &group->all()) != nullptr;
}

}  // namespace

std::string digest_of_layout(std::span<const std::uint64_t> numbers) {
  return sha256(std::as_bytes(numbers)).substr(0, 16);
}

bool shares_memory_of_host(Communicator& communicator) {
  return !are_threads(communicator) && communicator.topology().local_size(communicator.rank()) > 1;
}

HostMemories map_host_memories(Communicator& communicator, std::span<const HostBlock> blocks,
                               const Operation& operation) {
  return communicator.size() == 1 || are_threads(communicator)
             ? share_between_threads(communicator, blocks, operation)
             : share_between_processes(communicator, blocks, operation);
}

std::unique_ptr<HostMemory> map_host_memory(Communicator& communicator, const HostBlock& block,
                                            const Operation& operation) {
  return std::move(map_host_memories(communicator, std::span(&block, 1), operation).front());
}

void remap_host_memory(std::unique_ptr<HostMemory>& memory, Communicator& communicator, const HostBlock& block,
                       const Operation& operation) {
  if (memory) {
    memory.reset();
    communicator.barrier(operation);
  }
  memory = map_host_memory(communicator, block, operation);
}

}  // namespace lockstep::comm
