// Communicator: moves bytes between ranks. It never adds floats, except in all_reduce_sum, which is only for jobs that
// say `exact: never`.
//
// Every blocking call takes the operation's name and step, and has a deadline: when it passes, the call ends with an
// Error(infrastructure) that names host, rank, peer, operation and step.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Which rank runs on which host. Hosts are numbered in order of their lowest rank.
struct Topology {
  std::vector<int> host_of;             ///< by rank
  std::vector<std::string> host_names;  ///< by host
  std::vector<int> numbers = {};        ///< if these are only some of the job's ranks: each one's number in the job;
                                        ///< empty: ranks are numbered as here
  bool same_host(int a, int b) const { return host_of.at(a) == host_of.at(b); }
  const std::string& host_name(int rank) const { return host_names.at(host_of.at(rank)); }
  /// The rank's number in messages.
  int number(int rank) const { return numbers.empty() || rank < 0 ? rank : numbers.at(rank); }
  int local_rank(int rank) const;  ///< position among its host's ranks
  int local_size(int rank) const;
};

/// Extends the deadline of waits: those for a rank that waits for others in its turn.
class WaitWatch {
 public:
  virtual ~WaitWatch() = default;
  /// Called about every 100 ms by a wait for `peer`. The wait expires when the operation's timeout has passed since
  /// then, not since the wait began.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point last_progress(int peer) = 0;
  /// The rank that a wait for `peer` is for in the end.
  [[nodiscard]] virtual int blamed(int peer) = 0;
};

/// What a call is part of, for messages and its deadline.
struct Operation {
  const char* name = "";
  std::uint64_t step = 0;
  std::chrono::milliseconds timeout{60'000};
  /// If not null, another thread may set it to cancel. A wait for a message that has not come then ends with an error
  /// within a fraction of a second.
  const std::atomic<bool>* stop = nullptr;
  WaitWatch* watch = nullptr;  ///< null: the timeout counts from the beginning of the wait
};

/// A send or receive under way. The buffer must live until done() or wait(). Destroying an unfinished transfer is
/// allowed only when the communicator is being torn down.
class Transfer {
 public:
  virtual ~Transfer() = default;
  [[nodiscard]] virtual bool done() = 0;
  virtual void wait(const Operation& operation) = 0;
};

/// Bytes that left this rank, by path.
struct TrafficCounters {
  std::uint64_t shared_memory_bytes = 0;  ///< read by peers of the same host
  std::uint64_t network_bytes = 0;        ///< sent by messages
  std::uint64_t messages = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const Topology& topology() const = 0;

  /// Messages between two ranks with one tag arrive in order. The caller may use tags 0 ... 2^20 - 1, of which the
  /// upper half is reserved for the reducers. Any thread may call these. `notify` is called once when the message has
  /// come, from some thread; it must not block. The transfer may be done() before `notify` has returned, but its
  /// destructor waits for that.
  [[nodiscard]] virtual std::unique_ptr<Transfer> send(std::span<const std::byte> bytes, int to, int tag) = 0;
  [[nodiscard]] virtual std::unique_ptr<Transfer> receive(std::span<std::byte> bytes, int from, int tag,
                                                          std::function<void()> notify = {}) = 0;

  /// Throws if another rank is already known to be gone; for code that waits by other means.
  virtual void check_peers() {}

  /// Collectives: called by one thread, in the same order on every rank.
  virtual void barrier(const Operation& operation) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root, const Operation& operation) = 0;
  /// `out` holds size() blocks of in.size() bytes, in rank order.
  virtual void all_gather(std::span<const std::byte> in, std::span<std::byte> out, const Operation& operation) = 0;
  /// Not exact: the association is the library's.
  virtual void all_reduce_sum(std::span<float> values, const Operation& operation) = 0;

  virtual TrafficCounters traffic() const = 0;
  /// Ends every rank of the job at once with this exit code; for errors that only one rank sees.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

/// A communicator of one rank; does not start MPI.
[[nodiscard]] std::unique_ptr<Communicator> make_single_communicator();

/// Runs `body` once per rank in `size` threads of this process and rethrows the first error. `host_of` puts ranks on
/// pretended hosts (empty: all on one), so that tests cover the all-reduce within a host and between hosts.
void run_in_threads(int size, const std::function<void(Communicator&)>& body, const std::vector<int>& host_of = {});

}  // namespace lockstep
