// NCCL between the ranks of a job, one GPU each.
//
// It never blocks without an end: NCCL is set not to block, and this class polls until the deadline. At the start the
// ranks agree over MPI that NCCL is ready on all of them: where it is late or fails on one, all abort it and name that
// rank. Later each rank hears of a failure from NCCL alone, and who waits for the GPU asks with check() and aborts.
//
// NCCL only moves bytes in exact mode; it adds floats in all_reduce_sum alone, for `exact: never`.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>

#include "comm/transport/gpu_transport.hpp"

namespace lockstep::comm {

class NcclGroup final : public GpuTransport {
 public:
  /// As make_gpu_transport(). The calling thread's GPU is the rank's; it outlives the group.
  NcclGroup(Communicator& ranks, device::Gpu& gpu, device::GpuPlace place, std::chrono::milliseconds timeout);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup() override;

  void enter(std::uint64_t step) override;
  void send_receive(std::span<const Message> sends, std::span<const Message> receives, Stream stream) override;
  void all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) override;
  void all_reduce_sum(float* values, std::int64_t count, Stream stream) override;
  void check(const Operation& operation) override;
  void abort() noexcept override;

 private:
  struct Invitation {
    ncclUniqueId id;
    ncclResult_t made;  ///< by rank 0
  };
  void initialize(Communicator& ranks, std::chrono::milliseconds timeout);
  void join(Communicator& ranks, const Invitation& invitation);
  /// Launches the calls on their streams as one group; NCCL then has no order among them to wait for.
  template <class Calls>
  void launch(const char* what, const Calls& calls);
  /// NCCL's verdict on what is under way.
  [[nodiscard]] ncclResult_t state();
  /// The same, asked until there is one or the time is over (then ncclInProgress).
  [[nodiscard]] ncclResult_t poll(std::chrono::milliseconds timeout);
  /// Until a call that is under way has been accepted.
  void settle(const char* call);
  void require_alive(const char* call) const;
  [[nodiscard]] cudaStream_t at(Stream stream) const;

  device::Gpu& gpu_;
  device::GpuPlace place_;
  std::int64_t rank_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;  ///< one thread may abort what another is in
  ncclComm_t communicator_ = nullptr;
};

}  // namespace lockstep::comm
