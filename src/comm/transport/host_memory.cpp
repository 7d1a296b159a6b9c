#include "comm/transport/host_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "comm/transport/group.hpp"
#include "comm/transport/thread_communicator.hpp"
#include "comm/transport/topology.hpp"
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

class HeapMemory final : public HostMemory {
 public:
  [[nodiscard]] std::byte* block(int local_rank) const override {
    return blocks_.at(static_cast<std::size_t>(local_rank))->data();
  }
  std::vector<std::shared_ptr<AlignedBytes>> blocks_;
};

class SharedMemory final : public HostMemory {
 public:
  [[nodiscard]] std::byte* block(int local_rank) const override {
    return segments_.at(static_cast<std::size_t>(local_rank)).data();
  }
  std::vector<SharedSegment> segments_;
};

// Threads of one process exchange pointers to their blocks.
std::unique_ptr<HostMemory> share_between_threads(Communicator& communicator, const std::shared_ptr<AlignedBytes>& mine,
                                                  const Operation& operation) {
  const auto all = gather<const std::shared_ptr<AlignedBytes>*>(communicator, &mine, operation);
  auto memory = std::make_unique<HeapMemory>();
  for (int r = 0; r < communicator.size(); ++r) {
    if (communicator.topology().same_host(r, communicator.rank())) {
      memory->blocks_.push_back(*all[static_cast<std::size_t>(r)]);
    }
  }
  communicator.barrier(operation);  // `mine` must live until all have copied it
  return memory;
}

// What each rank tells the others about its segment; a failure is sent too, so that all ranks end with its message.
struct Announcement {
  std::array<char, 64> server{};  ///< name of the server that hands out its file
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

std::unique_ptr<HostMemory> share_between_processes(Communicator& communicator, std::size_t bytes,
                                                    const std::function<void(std::byte*)>& prepare,
                                                    const Operation& operation, Pages pages) {
  Announcement mine;
  mine.bytes = bytes;
  SharedSegment own;
  std::unique_ptr<FileServer> server;
  try {
    own = SharedSegment::create(bytes, pages);
    prepare(own.data());
    server = std::make_unique<FileServer>(own.take_file());
    write(mine.server, server->name());
  } catch (const Error& error) {
    write(mine.error, error.what());
  }
  const auto all = gather(communicator, mine, operation);
  auto memory = std::make_unique<SharedMemory>();
  Announcement result;
  try {
    throw_any_error(communicator, all);
    for (int r = 0; r < communicator.size(); ++r) {
      if (!communicator.topology().same_host(r, communicator.rank())) continue;
      const Announcement& peer = all[static_cast<std::size_t>(r)];
      memory->segments_.push_back(r == communicator.rank()
                                      ? std::exchange(own, SharedSegment())
                                      : SharedSegment::open(peer.server.data(), peer.bytes, operation.timeout));
    }
  } catch (const Error& error) {
    write(result.error, error.what());
  }
  const auto results = gather(communicator, result, operation);  // all have mapped it, or one reports why not
  throw_any_error(communicator, all);
  throw_any_error(communicator, results);
  return memory;
}

bool are_threads(Communicator& communicator) {
  auto* const group = dynamic_cast<GroupCommunicator*>(&communicator);
  return dynamic_cast<ThreadCommunicator*>(group == nullptr ? &communicator : &group->all()) != nullptr;
}

}  // namespace

std::unique_ptr<HostMemory> map_host_memory(Communicator& communicator, std::size_t bytes,
                                            const std::function<void(std::byte*)>& prepare, const Operation& operation,
                                            Pages pages) {
  if (communicator.size() == 1 || are_threads(communicator)) {
    auto mine = std::make_shared<AlignedBytes>(bytes);
    prepare(mine->data());
    return share_between_threads(communicator, mine, operation);
  }
  return share_between_processes(communicator, bytes, prepare, operation, pages);
}

}  // namespace lockstep::comm
