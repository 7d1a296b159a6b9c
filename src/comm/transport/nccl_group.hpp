// NCCL between the ranks of a job, one GPU each.
//
// It never blocks indefinitely: NCCL is set to non-blocking mode, and this class polls until the deadline. At the
// start, the ranks agree over MPI that NCCL is ready on all of them: if it is late or fails on one, all abort it and
// name that rank. Later, each rank learns of a failure only from NCCL itself: code that waits for the GPU calls check()
// and aborts.
//
// In exact mode NCCL only moves bytes; it adds floats only in all_reduce_sum, for `exact: never`.
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
  /// See make_gpu_transport(). The calling thread's current GPU must be the rank's, and must outlive the group.
  NcclGroup(Communicator& ranks, device::Gpu& gpu, device::GpuPlace place, std::chrono::milliseconds timeout);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup() override;

  void enter(std::uint64_t step) override;
  void send_receive(std::span<const Message> sends, std::span<const Message> receives, Stream stream) override;
  void all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) override;
  void broadcast(std::span<const Owned> list, Stream stream) override;
  void all_reduce_sum(float* values, std::int64_t count, Stream stream) override;
  void check(const Operation& operation) override;
  void abort() noexcept override;

 private:
  struct Invitation {
    ncclUniqueId id;
    ncclResult_t made;  ///< rank 0's result of making the id
  };
  void initialize(Communicator& ranks, std::chrono::milliseconds timeout);
  void join(Communicator& ranks, const Invitation& invitation);
  /// Launches the calls on their streams as one group; NCCL then does not wait for one before another.
  template <class Calls>
  void launch(const char* what, const Calls& calls);
  /// NCCL's state of what is in progress.
  [[nodiscard]] ncclResult_t state();
  /// Polls state() until it is no longer in progress or the time is over (then ncclInProgress).
  [[nodiscard]] ncclResult_t poll(std::chrono::milliseconds timeout);
  /// Waits until a call in progress has been accepted.
  void settle(const char* call);
  void require_alive(const char* call) const;
  cudaStream_t at(Stream stream) const;

  device::Gpu& gpu_;
  device::GpuPlace place_;
  std::int64_t rank_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;  ///< because one thread may abort a call of another
  ncclComm_t communicator_ = nullptr;
};

}  // namespace lockstep::comm
