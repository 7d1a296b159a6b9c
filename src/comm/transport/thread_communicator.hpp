// Ranks as threads of one process, for tests and the debugger: mailboxes instead of MPI.
//
// A message is copied when it is sent, so sends are done at once. A rank that ends with an error wakes all others with
// an error that names it, so none waits for it until the deadline.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/point_to_point.hpp"

namespace lockstep::comm {

/// A posted receive; done once its message is in `bytes`.
struct PostedReceive {
  std::span<std::byte> bytes;
  std::function<void()> notify;
  std::atomic<bool> done{false};
};

/// Messages to one rank, in order for each (sender, tag).
class Mailbox {
 public:
  void deliver(std::span<const std::byte> bytes, int from, int tag);
  void post(std::shared_ptr<PostedReceive> receive, int from, int tag);
  /// Returns false at `until`, or when `failed` is set, if the receive is not done by then.
  [[nodiscard]] bool wait(const PostedReceive& receive, std::chrono::steady_clock::time_point until,
                          const std::atomic<bool>& failed);
  /// Call before the receiver's memory is freed; if the message still comes, it is dropped.
  void cancel(const PostedReceive& receive);
  void wake();

 private:
  struct Channel {
    std::deque<std::vector<std::byte>> messages;
    std::deque<std::shared_ptr<PostedReceive>> receives;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, Channel> channels_;
};

/// What the ranks of one job share.
class ThreadWorld {
 public:
  explicit ThreadWorld(Topology topology);
  [[nodiscard]] Mailbox& mailbox(int rank) { return mailboxes_.at(rank); }
  const Topology& topology() const { return topology_; }
  int size() const { return mailboxes_.size(); }
  /// Only the first error of all counts.
  void fail(int rank, std::exception_ptr error);
  const std::atomic<bool>& failed() const { return failed_; }
  void throw_if_failed(int rank);
  std::exception_ptr error() const { return error_; }

 private:
  std::vector<Mailbox> mailboxes_;
  Topology topology_;
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  int failed_rank_ = -1;
  std::exception_ptr error_;
};

/// A send whose bytes have already been copied.
class SentTransfer final : public Transfer {
 public:
  [[nodiscard]] bool done() override { return true; }
  void wait(const Operation&) override {}
};

class ThreadCommunicator : public PointToPointCommunicator {
 public:
  ThreadCommunicator(ThreadWorld& world, int rank) : world_(world), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return world_.size(); }
  const Topology& topology() const override { return world_.topology(); }
  std::unique_ptr<Transfer> send(std::span<const std::byte> bytes, int to, int tag) override;
  std::unique_ptr<Transfer> receive(std::span<std::byte> bytes, int from, int tag,
                                    std::function<void()> notify) override;
  void check_peers() override { world_.throw_if_failed(rank_); }
  TrafficCounters traffic() const override;
  [[noreturn]] void abort(int exit_code) override;

 private:
  ThreadWorld& world_;
  int rank_;
  std::atomic<std::uint64_t> bytes_{0}, messages_{0};
};

/// Runs `body` in a thread for each of these ranks, and rethrows the first error.
void run_ranks(ThreadWorld& world, const std::vector<int>& ranks, const std::function<void(int rank)>& body);

}  // namespace lockstep::comm
