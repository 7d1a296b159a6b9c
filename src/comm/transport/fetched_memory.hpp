// FetchedMemory: a block that every host has, of which each keeps what its ranks own. The rest comes from the owners, a
// unit at a time, shortly before somebody reads it, and is dropped when others need the room: what others call
// unsharding and resharding, or an all-gather on demand.
//
// A unit stands at the same addresses whenever it is there, and is there once for all ranks of a host. Its state is one
// word in shared memory, so any thread of any rank may begin to fetch it, or drop it:
//
//   dropped -> fetching -> resident <-> resident, with readers
//      ^                      |
//      +----- dropping <------+
//
// A rank's own thread sends for what it fetches for its host: the slices of those owners that it leads for
// (Hosts::leader()), and answers those who send for what it owns. The owners change what they have between two
// versions; what was fetched of an older one counts as dropped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "comm/transport/doorbell.hpp"
#include "comm/transport/host_memory.hpp"
#include "comm/transport/topology.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Bytes [begin, end) of a block that a rank owns.
struct OwnedBytes {
  std::size_t begin = 0, end = 0;
  int owner = 0;
};

struct FetchedMemoryOptions {
  std::size_t bytes = 0;                       ///< of the block
  std::vector<std::vector<OwnedBytes>> units;  ///< ascending; together they are all that is ever read
  int kept = 4;                                ///< units that a host has at a time beside its own, unless more are read
  std::chrono::milliseconds timeout{60'000};
};

class FetchedMemory {
 public:
  /// Collective. The communicator outlives it. The block is not cleared.
  FetchedMemory(Communicator& communicator, FetchedMemoryOptions options);
  /// Collective, unless an error is being unwound: a rank stays until all others want nothing more of it.
  ~FetchedMemory();
  FetchedMemory(const FetchedMemory&) = delete;
  FetchedMemory& operator=(const FetchedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return block_->block(0); }
  [[nodiscard]] int units() const { return static_cast<int>(options_.units.size()); }

  /// Begins to fetch a unit, if there is room.
  void prefetch(int unit);
  /// Returns when the unit may be read, until release(). By any thread.
  void acquire(int unit, const Operation& operation);
  void release(int unit);
  /// Returns when nothing is on its way to this host. When each rank has called it after its last acquire(), the owners
  /// may write.
  void settle(const Operation& operation);
  /// The owners have written; nobody reads. Every rank calls it, as often as all others, before it reads again.
  void next_version();

  /// To other hosts.
  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  /// A unit as all ranks of the host see it.
  struct alignas(64) Shared {
    std::atomic<std::uint64_t> word{0};       ///< Word
    std::atomic<std::uint32_t> arrived{0};    ///< ranks that have fetched their share
    std::atomic<std::uint64_t> last_used{0};  ///< by the host's clock
  };
  struct alignas(64) HostClock {
    std::atomic<std::uint64_t> now{0};
  };
  /// What one message says.
  struct Request {
    std::int64_t unit = 0;  ///< -1: nothing more
  };
  /// Another host's rank that sends for what this rank owns.
  struct Reader {
    int rank = 0;
    std::unique_ptr<Request> request;
    std::unique_ptr<Transfer> transfer;  ///< null: it wants nothing more
  };
  /// A unit on its way.
  struct Fetch {
    int unit = 0;
    std::vector<std::unique_ptr<Transfer>> receives;
  };
  struct Sent {
    std::unique_ptr<Request> request;  ///< null: it was an answer
    std::unique_ptr<Transfer> transfer;
  };

  void map();
  void find_shares();
  [[nodiscard]] Shared& shared(int unit) const;
  [[nodiscard]] HostClock& host_clock() const;
  [[nodiscard]] Doorbell& doorbell(int local_rank) const;
  [[nodiscard]] Doorbell& doorbell() const { return doorbell(local_rank_); }
  void ring_all() const;
  [[nodiscard]] bool is_foreign(int unit) const { return !fetchers_[static_cast<std::size_t>(unit)].empty(); }

  void begin_fetch(int unit, bool demanded);
  [[nodiscard]] bool make_room();
  bool drop_oldest();
  void check(const Operation& operation, Clock::time_point start, int unit) const;

  void run_thread();
  bool answer();
  bool fetch();
  void send_for(int unit);
  bool finish_fetches();
  void share_done(int unit);
  void listen_to(Reader& reader);
  void say_goodbye();

  Communicator& communicator_;
  FetchedMemoryOptions options_;
  Hosts hosts_;
  int local_rank_;
  std::vector<int> local_ranks_;  ///< of this host
  const int exceptions_;
  std::unique_ptr<HostMemory> block_, control_;
  std::vector<std::vector<int>> fetchers_;                                 ///< by unit: ranks of this host
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> foreign_;  ///< by unit: runs that other hosts own
  std::atomic<std::uint64_t> version_{1};

  // Of the thread.
  std::vector<Reader> readers_;
  std::vector<std::uint64_t> fetched_;  ///< by unit: the number of the fetch that was begun last
  std::vector<Fetch> under_way_;
  std::vector<Sent> sent_;
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::atomic<bool> stop_{false}, failed_{false};
  std::atomic<bool> is_quiet_{false};  ///< all readers want nothing more, and all that was sent has left
  std::exception_ptr error_;           ///< set before failed_
  std::thread thread_;
};

}  // namespace lockstep::comm
