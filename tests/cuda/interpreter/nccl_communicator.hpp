// A communicator of the stand-in for NCCL: one rank of a group, in a process of its own or beside others of a test.
//
// It does not block. What NCCL does in a thread of its own goes on here when ncclCommGetAsyncError asks: a group's
// kernel comes to the stream in some later call, so that whoever does not wait until NCCL has taken it finds nothing
// there. A kernel reads what it sends and writes what it receives while it is the next on its stream, and is done when
// the others have taken what it sent, as where NCCL has no buffers for it.
//
// NCCL matches messages between two ranks, and collectives of a communicator, by their order alone, and checks nothing:
// of calls that do not fit it hangs, or moves what it shouldn't. Here that is a problem, by name, and then a hang.
//
// All of it is used under cudaInterpreterMutex().
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
  void* to = nullptr;  ///< of messages: one of the two
  u64 count = 0;
  int other = 0;  ///< a message's peer, a broadcast's root
  cudaStream_t stream = nullptr;
};

/// A fault that the environment asks for, of one rank: RANK:GROUP. Group 0 is the start, 1 what ncclGroupEnd ends
/// first.
struct NcclFault {
  u64 group = 0;
  static std::optional<NcclFault> asked(const char* variable, int rank);
};

class GroupKernel;

class NcclCommunicator : public std::enable_shared_from_this<NcclCommunicator> {
 public:
  NcclCommunicator(const std::string& id, int ranks, int rank);

  /// Whether the start has failed at once.
  [[nodiscard]] ncclResult_t begun() const { return state_; }
  /// What ncclCommGetAsyncError finds; and all goes on.
  ncclResult_t ask();
  /// Those that ncclGroupEnd ends. They are not empty, and each is right by itself.
  ncclResult_t put(std::vector<NcclCall> calls);
  /// Success, where another call may be made.
  ncclResult_t require_ready();
  ncclResult_t finalize();
  /// Of ncclCommDestroy: whether nothing is under way.
  [[nodiscard]] bool is_finalized() const { return phase_ == Phase::finalized; }
  /// Its kernels end, whatever they have done.
  void abort();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  /// Of what failed last, in NCCL's place for it.
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
  bool is_deaf_;  ///< it doesn't hear that another rank is gone
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
