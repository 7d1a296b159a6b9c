// A communicator of the stand-in for NCCL: one rank of a group, in its own process or together with others in a test.
//
// It does not block. What NCCL does in a thread of its own happens here when ncclCommGetAsyncError is called: a group's
// kernel is put on the stream by some later call, so that code that does not wait until NCCL has enqueued it finds
// nothing there. A kernel reads what it sends and writes what it receives while it is the next on its stream, and is
// done when the others have taken what it sent, as if NCCL had no buffers for it.
//
// NCCL matches messages between two ranks, and collectives of a communicator, by their order alone, and checks nothing:
// if calls do not match, it hangs or moves wrong data. Here that is a named problem, followed by a hang.
//
// Everything is used under cudaInterpreterMutex().
#pragma once

#include <nccl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/interpreter/library_kernel.hpp"
#include "cuda/interpreter/nccl_links.hpp"

namespace lockstep::ptx {

/// One call between ncclGroupStart and ncclGroupEnd.
struct NcclCall {
  const char* name = "";
  FrameKind kind = FrameKind::message;
  const void* from = nullptr;
  void* to = nullptr;  ///< messages: either `from` or `to` is set
  u64 count = 0;
  int other = 0;  ///< a message's peer, a broadcast's root
  cudaStream_t stream = nullptr;
};

/// A fault that the environment requests for one rank: RANK:GROUP. Group 0 is the start, 1 the first group that
/// ncclGroupEnd ends.
struct NcclFault {
  u64 group = 0;
  static std::optional<NcclFault> asked(const char* variable, int rank);
};

class GroupKernel;

class NcclCommunicator : public std::enable_shared_from_this<NcclCommunicator> {
 public:
  NcclCommunicator(const std::string& id, int ranks, int rank);

  /// The error if the start has failed at once.
  [[nodiscard]] ncclResult_t begun() const { return state_; }
  /// The answer of ncclCommGetAsyncError; also lets everything progress.
  ncclResult_t ask();
  /// Enqueues the calls that ncclGroupEnd ends. There is at least one, and each is valid by itself.
  ncclResult_t put(std::vector<NcclCall> calls);
  /// Success if another call may be made.
  ncclResult_t require_ready();
  ncclResult_t finalize();
  /// For ncclCommDestroy: whether nothing is in flight.
  [[nodiscard]] bool is_finalized() const { return phase_ == Phase::finalized; }
  /// Ends its kernels, whatever they have done.
  void abort();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  /// Description of the last failure, for ncclGetLastError.
  [[nodiscard]] const std::string& last_error() const { return last_error_; }

 private:
  friend class GroupKernel;
  enum class Phase : u8 { meeting, ready, accepting, finalizing, finalized, aborted };

  ncclResult_t fail(ncclResult_t code, std::string what);
  void go_on();
  void accept();
  void look_for_lost_peers();
  [[nodiscard]] Link& link(int rank) { return *links_[static_cast<std::size_t>(rank)]; }
  template <class Body>
  void each_other(const Body& body) {
    for (int other = 0; other < ranks_; ++other) {
      if (other != rank_) body(other);
    }
  }

  int ranks_, rank_;
  bool is_deaf_;  ///< does not notice that another rank is gone
  Phase phase_ = Phase::meeting;
  ncclResult_t state_ = ncclInProgress;
  std::string last_error_;
  std::optional<Meeting> meeting_;
  std::vector<std::unique_ptr<Link>> links_;
  std::optional<NcclFault> hangs_, fails_;

  std::shared_ptr<GroupKernel> next_;  ///< to be put on the stream
  int questions_left_ = 0;             ///< until then
  cudaStream_t stream_ = nullptr;      ///< of all groups
  u64 groups_ = 0, groups_done_ = 0, collectives_ = 0;
};

}  // namespace lockstep::ptx
