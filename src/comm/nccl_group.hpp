// NCCL between the ranks of a job, one GPU each. Not a Communicator: what it moves lies on GPUs, and every call only
// puts work on a stream.
//
// It never blocks without an end: NCCL is told not to block, this class polls until the deadline, and a group that is
// late or broken is aborted, so that the ranks can agree over MPI and end. NCCL only moves bytes in exact mode; it adds
// floats in all_reduce_sum alone, for `exact: never`.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstdint>
#include <span>

#include "backend/gpu/gpu_place.hpp"
#include "comm/slice_plan.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

class NcclGroup {
 public:
  /// Every rank calls it; rank 0's unique id goes over `ranks`. The calling thread's GPU is the rank's. Throws
  /// Error(infrastructure) at the deadline.
  NcclGroup(Communicator& ranks, backend::GpuPlace place, std::chrono::milliseconds timeout);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup();

  /// Puts all messages of a plan on the stream, as one group. `roots`: this rank's partial sums of the bucket, by root;
  /// `received`: plan.receive_elements floats. The additions are the caller's, on the same stream.
  void exchange(const SlicePlan& plan, std::span<const float* const> roots, float* received, cudaStream_t stream);
  /// Gives every rank every owner's slice, in place. `bounds`: slice_bounds() of the bucket.
  void all_gather(float* bucket, std::span<const std::int64_t> bounds, cudaStream_t stream);
  /// Not exact: the association is NCCL's.
  void all_reduce_sum(float* values, std::int64_t count, cudaStream_t stream);

  /// Throws if NCCL has found out, meanwhile, that something is wrong: a peer that is gone, a network that is down.
  /// Call it while waiting for a stream; NCCL's kernels would wait for ever.
  void check(const Operation& operation);
  /// Ends what is under way, on this rank. Afterwards only destruction is allowed.
  void abort() noexcept;

 private:
  void initialize(Communicator& ranks, std::chrono::milliseconds timeout);
  /// Until a call that is under way has been accepted.
  void settle(const char* call);

  backend::GpuPlace place_;
  std::chrono::milliseconds timeout_;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace lockstep::comm
