// Messages that go wrong at a step: what this rank's GPU has to do from there on does not end, until they are aborted.
// That is found out by nobody, or by check(), which sees nothing else. What other ranks are sent still comes to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "comm/transport/gpu_transport.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

struct MessageFault {
  std::uint64_t step = 0;
  std::string found;  ///< what check() then throws; empty: it finds nothing
  std::atomic<int> checks = 0, aborts = 0;
  Operation asked;  ///< what check() was told last
};

/// The fake has stall() and resume(), and outlives the messages.
template <class Fake>
class FaultyMessages final : public GpuMessages {
 public:
  FaultyMessages(std::unique_ptr<GpuMessages> messages, Fake& gpu, std::shared_ptr<MessageFault> fault)
      : messages_(std::move(messages)), gpu_(gpu), fault_(std::move(fault)) {}

  void enter(std::uint64_t step) override {
    messages_->enter(step);
    broken_ = step == fault_->step;
  }
  void exchange(std::span<const Message> sends, std::span<const Message> receives, Stream stream) override {
    messages_->exchange(sends, receives, stream);
    stall(stream);
  }
  void all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) override {
    messages_->all_gather(bucket, bounds, stream);
    stall(stream);
  }
  void all_reduce_sum(float* values, std::int64_t count, Stream stream) override {
    messages_->all_reduce_sum(values, count, stream);
    stall(stream);
  }
  void check(const Operation& operation) override {
    ++fault_->checks;
    fault_->asked = operation;
    if (broken_ && !fault_->found.empty()) throw Error(ExitCode::infrastructure, fault_->found);
  }
  void abort() noexcept override {
    ++fault_->aborts;
    messages_->abort();
    gpu_.resume();
  }

 private:
  void stall(Stream stream) {
    if (broken_) gpu_.stall(stream);
  }

  std::unique_ptr<GpuMessages> messages_;
  Fake& gpu_;
  std::shared_ptr<MessageFault> fault_;
  bool broken_ = false;
};

}  // namespace lockstep::comm
