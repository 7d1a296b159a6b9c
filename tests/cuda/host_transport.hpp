// GpuTransport for GPUs that are the host: messages of the Communicator. `touch` is called for each access, as for a
// kernel on the stream; a fake uses it to check the order of accesses.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "comm/transport/gpu_transport.hpp"

namespace lockstep::comm {

class HostTransport final : public GpuTransport {
 public:
  using Touch = std::function<void(Stream, float* memory, std::int64_t elements, bool writes)>;

  HostTransport(Communicator& ranks, std::chrono::milliseconds timeout, Touch touch = {})
      : ranks_(ranks), timeout_(timeout), touch_(std::move(touch)) {}

  void enter(std::uint64_t step) override { step_ = step; }
  void send_receive(std::span<const Message> sends, std::span<const Message> receives, Stream stream) override {
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (const Message& receive : receives) {
      transfers.push_back(get(receive.memory, receive.count, receive.peer, kSlices, stream));
    }
    for (const Message& send : sends) transfers.push_back(put(send.memory, send.count, send.peer, kSlices, stream));
    wait_for(transfers);
  }
  void all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) override {
    std::vector<std::unique_ptr<Transfer>> transfers;
    const auto each_other = [&](const auto& body) {
      for (int other = 0; other < ranks_.size(); ++other) {
        if (other != ranks_.rank()) body(other);
      }
    };
    const auto slice = [&](int owner) {
      const auto o = static_cast<std::size_t>(owner);
      return std::pair(bucket + bounds[o], bounds[o + 1] - bounds[o]);
    };
    each_other([&](int other) {
      const auto [memory, count] = slice(other);
      if (count > 0) transfers.push_back(get(memory, count, other, kSums, stream));
    });
    const auto [memory, count] = slice(ranks_.rank());
    each_other([&, memory = memory, count = count](int other) {
      if (count > 0) transfers.push_back(put(memory, count, other, kSums, stream));
    });
    wait_for(transfers);
  }
  void broadcast(std::span<const Owned> list, Stream stream) override {
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (const Owned& of : list) {
      if (of.owner != ranks_.rank()) {
        transfers.push_back(get(of.memory, of.count, of.owner, kOwned, stream));
        continue;
      }
      for (int other = 0; other < ranks_.size(); ++other) {
        if (other != of.owner) transfers.push_back(put(of.memory, of.count, other, kOwned, stream));
      }
    }
    wait_for(transfers);
  }
  void all_reduce_sum(float* values, std::int64_t count, Stream stream) override {
    touch(stream, values, count, true);
    ranks_.all_reduce_sum(std::span(values, static_cast<std::size_t>(count)), operation());
  }
  void check(const Operation& /*operation*/) override { ranks_.check_peers(); }
  void abort() noexcept override {}

 private:
  static constexpr int kSlices = 71, kSums = 72, kOwned = 73;  // tags

  std::unique_ptr<Transfer> get(float* to, std::int64_t count, int from, int tag, Stream stream) {
    touch(stream, to, count, true);
    return ranks_.receive(std::as_writable_bytes(std::span(to, static_cast<std::size_t>(count))), from, tag);
  }
  std::unique_ptr<Transfer> put(float* from, std::int64_t count, int to, int tag, Stream stream) {
    touch(stream, from, count, false);
    return ranks_.send(std::as_bytes(std::span(from, static_cast<std::size_t>(count))), to, tag);
  }
  void touch(Stream stream, float* memory, std::int64_t count, bool writes) const {
    if (touch_) touch_(stream, memory, count, writes);
  }
  void wait_for(const std::vector<std::unique_ptr<Transfer>>& transfers) const {
    for (const auto& transfer : transfers) transfer->wait(operation());
  }
  [[nodiscard]] Operation operation() const { return {"messages between GPUs", step_, timeout_}; }

  Communicator& ranks_;
  std::chrono::milliseconds timeout_;
  Touch touch_;
  std::uint64_t step_ = 0;
};

}  // namespace lockstep::comm
