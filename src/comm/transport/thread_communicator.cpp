#include "comm/transport/thread_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "comm/transport/topology.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

void complete(PostedReceive& receive, std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(bytes.size() == receive.bytes.size(), "a message must have the size that was expected");
  std::copy(bytes.begin(), bytes.end(), receive.bytes.begin());
  receive.done.store(true, std::memory_order_release);
  if (receive.notify) receive.notify();
}

class ReceiveTransfer final : public Transfer {
 public:
  ReceiveTransfer(ThreadWorld& world, int rank, int from, std::shared_ptr<PostedReceive> receive)
      : world_(world), rank_(rank), from_(from), receive_(std::move(receive)) {}
  ~ReceiveTransfer() override { world_.mailbox(rank_).cancel(*receive_); }
  ReceiveTransfer(const ReceiveTransfer&) = delete;
  ReceiveTransfer& operator=(const ReceiveTransfer&) = delete;
  [[nodiscard]] bool done() override { return receive_->done.load(std::memory_order_acquire); }
  void wait(const Operation& operation) override {
    Wait wait(world_.topology(), rank_, from_, operation);
    while (!world_.mailbox(rank_).wait(*receive_, wait.next_check(), world_.failed())) {
      world_.throw_if_failed(rank_);
      wait.check();
    }
  }

 private:
  ThreadWorld& world_;
  int rank_, from_;
  std::shared_ptr<PostedReceive> receive_;
};

std::vector<std::string> host_names(int size, const std::vector<int>& host_of) {
  LOCKSTEP_CHECK(host_of.empty() || static_cast<int>(host_of.size()) == size, "one host a rank");
  std::vector<std::string> names;
  for (int r = 0; r < size; ++r) {
    const int host = host_of.empty() ? 0 : host_of[r];
    names.push_back(fmt::format("{}", static_cast<char>('a' + host)));
  }
  return names;
}

}  // namespace

void Mailbox::deliver(std::span<const std::byte> bytes, int from, int tag) {
  const std::lock_guard lock(mutex_);
  Channel& channel = channels_[{from, tag}];
  if (channel.receives.empty()) {
    channel.messages.emplace_back(bytes.begin(), bytes.end());
    return;
  }
  const auto receive = channel.receives.front();
  channel.receives.pop_front();
  complete(*receive, bytes);
  changed_.notify_all();
}

void Mailbox::post(std::shared_ptr<PostedReceive> receive, int from, int tag) {
  const std::lock_guard lock(mutex_);
  Channel& channel = channels_[{from, tag}];
  if (channel.messages.empty()) {
    channel.receives.push_back(std::move(receive));
    return;
  }
  complete(*receive, channel.messages.front());
  channel.messages.pop_front();
}

bool Mailbox::wait(const PostedReceive& receive, Clock::time_point until, const std::atomic<bool>& failed) {
  std::unique_lock lock(mutex_);
  const auto done = [&] { return receive.done.load(std::memory_order_acquire); };
  changed_.wait_until(lock, until, [&] { return done() || failed; });
  return done();
}

void Mailbox::cancel(const PostedReceive& receive) {
  const std::lock_guard lock(mutex_);  // the thread that completes a receive holds it until `notify` has returned
  if (receive.done) return;
  for (auto& [key, channel] : channels_) {
    std::erase_if(channel.receives, [&](const auto& posted) { return posted.get() == &receive; });
  }
}

void Mailbox::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

ThreadWorld::ThreadWorld(Topology topology) : mailboxes_(topology.host_of.size()), topology_(std::move(topology)) {}

void ThreadWorld::fail(int rank, std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failed_rank_ = rank;
    error_ = std::move(error);
    failed_ = true;
  }
  for (Mailbox& mailbox : mailboxes_) mailbox.wake();
}

void ThreadWorld::throw_if_failed(int rank) {
  if (!failed_) return;
  throw Error(ExitCode::infrastructure,
              fmt::format("{}: {} ended with an error", describe(topology_, rank), describe(topology_, failed_rank_)));
}

std::unique_ptr<Transfer> ThreadCommunicator::send(std::span<const std::byte> bytes, int to, int tag) {
  bytes_ += bytes.size();
  ++messages_;
  world_.mailbox(to).deliver(bytes, rank_, tag);
  return std::make_unique<SentTransfer>();
}

std::unique_ptr<Transfer> ThreadCommunicator::receive(std::span<std::byte> bytes, int from, int tag,
                                                      std::function<void()> notify) {
  auto posted = std::make_shared<PostedReceive>();
  posted->bytes = bytes;
  posted->notify = std::move(notify);
  world_.mailbox(rank_).post(posted, from, tag);
  return std::make_unique<ReceiveTransfer>(world_, rank_, from, std::move(posted));
}

TrafficCounters ThreadCommunicator::traffic() const {
  return {0, bytes_, messages_};
}

void ThreadCommunicator::abort(int exit_code) {
  throw Error(static_cast<ExitCode>(exit_code), fmt::format("{} ended the job", describe(topology(), rank_)));
}

void run_ranks(ThreadWorld& world, const std::vector<int>& ranks, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (const int rank : ranks) {
    threads.emplace_back([&world, &body, rank] {
      try {
        body(rank);
      } catch (...) {
        world.fail(rank, std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (world.error()) std::rethrow_exception(world.error());
}

}  // namespace lockstep::comm

namespace lockstep {

void run_in_threads(int size, const std::function<void(Communicator&)>& body, const std::vector<int>& host_of) {
  comm::ThreadWorld world(comm::make_topology(comm::host_names(size, host_of)));
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  comm::run_ranks(world, ranks, [&](int rank) {
    comm::ThreadCommunicator communicator(world, rank);
    body(communicator);
  });
}

}  // namespace lockstep
