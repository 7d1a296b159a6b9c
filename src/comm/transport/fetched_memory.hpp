// FetchedMemory: a block that every host has, but of which it keeps only what its ranks own. The rest is fetched from
// the owners, one unit at a time, shortly before it is read, and dropped when other units need the room (unsharding and
// resharding, or on-demand all-gather).
//
// A resident unit is always at the same addresses, and is stored once for all ranks of a host. Its state is one word in
// shared memory, so any thread of any rank can begin to fetch it, or drop it:
//
//   dropped -> fetching -> resident <-> resident, with readers
//      ^                      |
//      +----- dropping <------+
//
// A thread of each rank requests what the rank fetches for its host: the slices of those owners that it leads for
// (Hosts::leader()); it also answers requests for what the rank owns. The owners change their data between two
// versions; what was fetched in an older version counts as dropped.
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
#include "core/ran_time.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Bytes [begin, end) of a block, and the rank that owns them.
struct OwnedBytes {
  std::size_t begin = 0, end = 0;
  int owner = 0;
};

struct FetchedMemoryOptions {
  std::size_t bytes = 0;                       ///< of the block
  std::vector<std::vector<OwnedBytes>> units;  ///< ascending; together they cover everything that is ever read
  int kept = 4;                                ///< units that a host keeps besides its own, unless more are being read
  std::chrono::milliseconds timeout{60'000};
};

class FetchedMemory {
 public:
  /// Collective. The communicator must outlive it. The block is not cleared.
  FetchedMemory(Communicator& communicator, FetchedMemoryOptions options);
  /// Collective, unless an error is being unwound: waits until no other rank needs anything from this one.
  ~FetchedMemory();
  FetchedMemory(const FetchedMemory&) = delete;
  FetchedMemory& operator=(const FetchedMemory&) = delete;

  std::byte* data() const { return block_->block(0); }
  int units() const { return options_.units.size(); }

  /// Begins to fetch a unit if there is room.
  void prefetch(int unit);
  /// Returns when the unit may be read, until release(). Thread-safe.
  void acquire(int unit, const Operation& operation);
  void release(int unit);
  /// Returns when nothing is being fetched to this host. When each rank has called it after its last acquire(), the
  /// owners may write.
  void settle(const Operation& operation);
  /// Call when the owners have written and nobody reads. Every rank calls it, equally often, before it reads again.
  void next_version();

  /// Bytes sent to other hosts.
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  /// The part of a unit's state that all ranks of the host see.
  struct alignas(64) Shared {
    std::atomic<std::uint64_t> word{0};       ///< a Word
    std::atomic<std::uint32_t> arrived{0};    ///< ranks that have fetched their share
    std::atomic<std::uint64_t> last_used{0};  ///< by the host's clock
  };
  struct alignas(64) HostClock {
    std::atomic<std::uint64_t> now{0};
  };
  /// The content of a message to an owner.
  struct Request {
    std::int64_t unit = 0;  ///< -1: no more requests
  };
  /// A rank of another host that requests what this rank owns.
  struct Reader {
    int rank = 0;
    std::unique_ptr<Request> request;
    std::unique_ptr<Transfer> transfer;  ///< null: it makes no more requests
  };
  /// A unit being fetched.
  struct Fetch {
    int unit = 0;
    std::vector<std::unique_ptr<Transfer>> receives;
  };
  struct Sent {
    std::unique_ptr<Request> request;  ///< null: this was an answer
    std::unique_ptr<Transfer> transfer;
  };

  void map();
  std::vector<ByteRange> own_ranges() const;
  void find_shares();
  Shared& shared(int unit) const;
  HostClock& host_clock() const;
  Doorbell& doorbell(int local_rank) const;
  Doorbell& doorbell() const { return doorbell(local_rank_); }
  void ring_all() const;
  bool is_foreign(int unit) const { return !fetchers_[unit].empty(); }

  void begin_fetch(int unit, bool demanded);
  [[nodiscard]] bool make_room();
  bool drop_oldest();
  void check(const Operation& operation, RanTime& waited, int unit) const;

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
  /// by unit: the ranks of this host that fetch it
  std::vector<std::vector<int>> fetchers_;
  /// by unit: byte ranges that other hosts own
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> foreign_;
  std::atomic<std::uint64_t> version_{1};

  // Used by the thread only.
  std::vector<Reader> readers_;
  std::vector<std::uint64_t> fetched_;  ///< by unit: the number of the latest fetch
  std::vector<Fetch> under_way_;
  std::vector<Sent> sent_;
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::atomic<bool> stop_{false}, failed_{false};
  std::atomic<bool> is_quiet_{false};  ///< no reader makes more requests, and everything sent has left
  std::exception_ptr error_;           ///< set before failed_
  std::thread thread_;
};

}  // namespace lockstep::comm
