// Messages that go wrong at a step: from there on, this rank's GPU work that depends on them does not end until they
// are aborted. The fault is found either by nobody or by check(), which sees nothing else. What is sent to other ranks
// still arrives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "comm/transport/gpu_transport.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

struct TransportFault {
  std::uint64_t step = 0;
  std::string found;  ///< message that check() then throws; empty: it finds nothing
  std::atomic<int> checks = 0, aborts = 0;
  Operation asked;  ///< argument of the last check()
};

/// The fake must have stall() and resume(), and outlive the transport.
template <class Fake>
class FaultyTransport final : public GpuTransport {
 public:
  FaultyTransport(std::unique_ptr<GpuTransport> transport, Fake& gpu, std::shared_ptr<TransportFault> fault)
      : transport_(std::move(transport)), gpu_(gpu), fault_(std::move(fault)) {}

  void enter(std::uint64_t step) override {
    transport_->enter(step);
    broken_ = step == fault_->step;
  }
  void send_receive(std::span<const Message> sends, std::span<const Message> receives, Stream stream) override {
    transport_->send_receive(sends, receives, stream);
    stall(stream);
  }
  void all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) override {
    transport_->all_gather(bucket, bounds, stream);
    stall(stream);
  }
  void broadcast(std::span<const Owned> list, Stream stream) override {
    transport_->broadcast(list, stream);
    stall(stream);
  }
  void all_reduce_sum(float* values, std::int64_t count, Stream stream) override {
    transport_->all_reduce_sum(values, count, stream);
    stall(stream);
  }
  void check(const Operation& operation) override {
    ++fault_->checks;
    fault_->asked = operation;
    if (broken_ && !fault_->found.empty()) throw Error(ExitCode::infrastructure, fault_->found);
  }
  void abort() noexcept override {
    ++fault_->aborts;
    aborted_ = true;
    transport_->abort();
    gpu_.resume();
  }

 private:
  void stall(Stream stream) {
    if (!broken_ || aborted_) return;
    gpu_.stall(stream);
    if (aborted_) gpu_.resume();  // meanwhile, by another thread
  }

  std::unique_ptr<GpuTransport> transport_;
  Fake& gpu_;
  std::shared_ptr<TransportFault> fault_;
  bool broken_ = false;
  std::atomic<bool> aborted_ = false;
};

}  // namespace lockstep::comm
