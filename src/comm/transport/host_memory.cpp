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

template <class T>
std::vector<T> gather(Communicator& communicator, const T& mine, const Operation& operation) {
  std::vector<T> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), operation);
  return all;
}

// Ordinary memory.
class HeapMemory final : public HostMemory {
 public:
  [[nodiscard]] std::byte* block(int local_rank) const override {
    return blocks_.at(static_cast<std::size_t>(local_rank))->data();
  }
  std::vector<std::shared_ptr<AlignedBytes>> blocks_;
};

class SharedMemory final : public HostMemory {
 public:
  explicit SharedMemory(std::string use) : use_(std::move(use)) {}
  [[nodiscard]] std::byte* block(int local_rank) const override { return segment(local_rank).data(); }
  void take_pages(int local_rank, ByteRange range) const override { segment(local_rank).take_pages(range, use_); }
  std::vector<SharedSegment> segments_;

 private:
  [[nodiscard]] const SharedSegment& segment(int local_rank) const {
    return segments_.at(static_cast<std::size_t>(local_rank));
  }
  std::string use_;
};

// What each rank tells the others about its block; a failure is sent too, so that all ranks end with its message.
struct Announcement {
  std::array<char, HostBlock::kMaxLayout + 1> layout{};
  const std::shared_ptr<AlignedBytes>* block = nullptr;  ///< between threads: the block itself
  std::array<char, 64> server{};                         ///< between processes: who hands out its file
  std::uint64_t bytes = 0;
  std::array<char, 512> error{};
};

template <std::size_t N>
void write(std::array<char, N>& place, const std::string& text) {
  std::copy_n(text.begin(), std::min(text.size(), N - 1), place.begin());
}

void throw_any_error(const Communicator& communicator, const std::vector<Announcement>& all) {
  for (int r = 0; r < communicator.size(); ++r) {
    const auto& error = all[static_cast<std::size_t>(r)].error;
    if (error[0] == '\0') continue;
    throw Error(ExitCode::infrastructure, fmt::format("{}: {}", describe(communicator.topology(), r), error.data()));
  }
}

void compare_layouts(const Communicator& communicator, const std::vector<Announcement>& all, const std::string& use) {
  const Hosts hosts(communicator.topology());
  for (int r = 0; r < communicator.size(); ++r) {
    const int first = hosts.ranks(hosts.host_of(r)).front();
    const auto& expected = all[static_cast<std::size_t>(first)].layout;
    const auto& found = all[static_cast<std::size_t>(r)].layout;
    if (found == expected) continue;
    throw Error(
        ExitCode::internal,
        fmt::format("memory for {}: its layout is '{}' on {}, but '{}' on {}. This is a bug in lockstep; please "
                    "report it.",
                    use, expected.data(), describe(communicator.topology(), first), found.data(),
                    describe(communicator.topology(), r)));
  }
}

Announcement announcement_of(const HostBlock& block) {
  LOCKSTEP_CHECK(block.layout.size() <= HostBlock::kMaxLayout, "a layout is a short text");
  Announcement mine;
  mine.bytes = block.bytes;
  write(mine.layout, block.layout);
  return mine;
}

std::shared_ptr<AlignedBytes> make_ordinary(const HostBlock& block) {
  auto memory = std::make_shared<AlignedBytes>(block.bytes);
  block.prepare(memory->data());
  return memory;
}

// Threads of one process exchange pointers to their blocks.
std::unique_ptr<HostMemory> share_between_threads(Communicator& communicator, const HostBlock& block,
                                                  const Operation& operation) {
  const auto own = make_ordinary(block);
  Announcement mine = announcement_of(block);
  mine.block = &own;
  const auto all = gather(communicator, mine, operation);
  auto memory = std::make_unique<HeapMemory>();
  for (int r = 0; r < communicator.size(); ++r) {
    if (communicator.topology().same_host(r, communicator.rank())) {
      memory->blocks_.push_back(*all[static_cast<std::size_t>(r)].block);
    }
  }
  communicator.barrier(operation);  // `own` must live until all have copied it
  compare_layouts(communicator, all, block.use);
  return memory;
}

/// The blocks of this host's ranks. Collective only in that the owners must still serve their files.
std::unique_ptr<HostMemory> open_all(const Communicator& communicator, const HostBlock& block, SharedSegment own,
                                     const std::vector<Announcement>& all, const Operation& operation) {
  auto memory = std::make_unique<SharedMemory>(block.use);
  for (int r = 0; r < communicator.size(); ++r) {
    if (!communicator.topology().same_host(r, communicator.rank())) continue;
    const Announcement& peer = all[static_cast<std::size_t>(r)];
    memory->segments_.push_back(r == communicator.rank() ? std::exchange(own, SharedSegment())
                                                         : SharedSegment::open(peer.server.data(), peer.bytes,
                                                                               operation.timeout, block.all_read));
    if (!block.written) memory->segments_.back().close_file();
  }
  return memory;
}

std::unique_ptr<HostMemory> share_between_processes(Communicator& communicator, const HostBlock& block,
                                                    const Operation& operation) {
  const bool shares = shares_memory_of_host(communicator);
  Announcement mine = announcement_of(block);
  SharedSegment own;
  std::unique_ptr<FileServer> server;
  std::unique_ptr<HostMemory> memory;
  try {
    if (shares) {
      own = SharedSegment::create(block.bytes, block.use, block.written);
      block.prepare(own.data());
      server = std::make_unique<FileServer>(own.duplicate_file());
      write(mine.server, server->name());
    } else {
      auto ordinary = std::make_unique<HeapMemory>();
      ordinary->blocks_.push_back(make_ordinary(block));
      memory = std::move(ordinary);
    }
  } catch (const Error& error) {
    write(mine.error, error.what());
  }
  const auto all = gather(communicator, mine, operation);
  Announcement result;
  try {
    throw_any_error(communicator, all);
    if (shares) memory = open_all(communicator, block, std::move(own), all, operation);
  } catch (const Error& error) {
    write(result.error, error.what());
  }
  const auto results = gather(communicator, result, operation);  // all have mapped it, or one reports why not
  throw_any_error(communicator, all);
  compare_layouts(communicator, all, block.use);
  throw_any_error(communicator, results);
  return memory;
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

std::unique_ptr<HostMemory> map_host_memory(Communicator& communicator, const HostBlock& block,
                                            const Operation& operation) {
  return communicator.size() == 1 || are_threads(communicator)
             ? share_between_threads(communicator, block, operation)
             : share_between_processes(communicator, block, operation);
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
