// libnccl.so.2 for the interpreted GPU: the functions of NCCL that the module calls. A missing one is named by the
// dynamic linker; an unknown argument, by a problem.
//
//   INTERPRETED_NCCL_FAILS  RANK:GROUP  NCCL fails on that rank: in the group of calls with that number, from 1;
//                                       0: at the start. The group's kernel never ends
//   INTERPRETED_NCCL_HANGS  RANK:GROUP  the same without an error
//   INTERPRETED_NCCL_DEAF   set         no rank notices that another one has gone, as between GPUs of one host
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/interpreter/library_objects.hpp"
#include "cuda/interpreter/nccl_communicator.hpp"

namespace lockstep::ptx {

namespace {

constexpr const char* kIdStart = "interpreted-nccl-";

/// The communicators of this process. A leak is reported at its end.
LibraryObjects<NcclCommunicator>& communicators() {
  static LibraryObjects<NcclCommunicator> one{"communicators of NCCL"};
  return one;
}

/// The calls that the calling thread has put into its group. The first error of a call is also the group's.
struct NcclGroupOfThread {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  ncclComm_t communicator = nullptr;
  std::vector<NcclCall> calls;
};

NcclGroupOfThread& group_here() {
  thread_local NcclGroupOfThread group;
  return group;
}

std::string& last_nccl_error() {
  thread_local std::string text;
  return text;
}

ncclResult_t refused(ncclResult_t code, const std::string& what) {
  last_nccl_error() = what;
  return code;
}

/// Stores a communicator's error for ncclGetLastError.
ncclResult_t told(const NcclCommunicator& communicator, ncclResult_t code) {
  if (code != ncclSuccess && code != ncclInProgress) last_nccl_error() = communicator.last_error();
  return code;
}

ncclResult_t unknown(const NcclCall& call, const char* what) {
  cudaInterpreterProblem(fmt::format("{}: {} isn't known", call.name, what));
  return refused(ncclInvalidArgument, what);
}

ncclResult_t check(const NcclCall& call, ncclDataType_t type, const NcclCommunicator& communicator) {
  if (call.other < 0 || call.other >= communicator.ranks()) {
    return refused(ncclInvalidArgument, fmt::format("{} : invalid root {} (root should be in the 0..{} range)",
                                                    call.name, call.other, communicator.ranks()));
  }
  if (type != ncclFloat) return unknown(call, "another type than ncclFloat");
  const auto own = static_cast<std::size_t>(communicator.rank()) * call.count * sizeof(float);
  if (call.kind == FrameKind::message && call.other == communicator.rank()) {
    return unknown(call, "a message of a rank to itself");
  }
  if ((call.kind == FrameKind::gather && call.from != static_cast<const u8*>(call.to) + own) ||
      (call.kind == FrameKind::broadcast && call.from != call.to)) {
    return unknown(call, "another place for the result");
  }
  return ncclSuccess;
}

ncclResult_t end_group() {
  NcclGroupOfThread group = std::exchange(group_here(), {});
  if (group.error != ncclSuccess) return group.error;
  if (group.calls.empty()) return ncclSuccess;
  const auto found = communicators().find(group.communicator, "ncclGroupEnd");
  if (found == nullptr) return ncclInvalidArgument;
  return told(*found, found->put(std::move(group.calls)));
}

/// Adds one call, in a separate group if none is open.
ncclResult_t add(const NcclCall& call, ncclDataType_t type, ncclComm_t communicator) {
  const std::lock_guard lock(cudaInterpreterMutex());
  NcclGroupOfThread& group = group_here();
  const auto found = communicators().find(communicator, call.name);
  ncclResult_t result = found == nullptr ? ncclInvalidArgument : told(*found, found->require_ready());
  if (result == ncclSuccess) result = check(call, type, *found);
  if (result == ncclSuccess && !group.calls.empty() && group.communicator != communicator) {
    result = unknown(call, "a group of two communicators");
  }
  if (result != ncclSuccess) {
    if (group.depth > 0 && group.error == ncclSuccess) group.error = result;
    return result;
  }
  if (call.count == 0 && call.kind != FrameKind::message) return ncclSuccess;  // like NCCL, which ignores it
  group.communicator = communicator;
  group.calls.push_back(call);
  return group.depth > 0 ? ncclSuccess : end_group();
}

}  // namespace

}  // namespace lockstep::ptx

using lockstep::ptx::communicators;
using lockstep::ptx::FrameKind;
using lockstep::ptx::group_here;
using lockstep::ptx::refused;

#define LOCKSTEP_NCCL const std::lock_guard lock(cudaInterpreterMutex())

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

/// For the calling thread. NCCL's is for the process, whatever the communicator.
const char* ncclGetLastError(ncclComm_t /*communicator*/) {
  return lockstep::ptx::last_nccl_error().c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made = 0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  *id = {};
  const std::string text = fmt::format("{}{}-{}-{}", lockstep::ptx::kIdStart, getpid(), now, ++made);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  LOCKSTEP_NCCL;
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    return refused(ncclInvalidArgument, fmt::format("Invalid rank requested : {}/{}", rank, ranks));
  }
  if (config == nullptr || config->blocking != 0) {
    cudaInterpreterProblem("ncclCommInitRankConfig: a communicator that blocks isn't known");
    return refused(ncclInvalidArgument, "a communicator that blocks");
  }
  if (!std::string_view(id.internal, sizeof id.internal).starts_with(lockstep::ptx::kIdStart)) {
    cudaInterpreterProblem("ncclCommInitRankConfig: an id that ncclGetUniqueId hasn't made");
    return refused(ncclInvalidArgument, "not an id");
  }
  auto made = std::make_shared<lockstep::ptx::NcclCommunicator>(id.internal, ranks, rank);
  *communicator = nullptr;
  if (const ncclResult_t begun = made->begun(); begun != ncclInProgress) return lockstep::ptx::told(*made, begun);
  *communicator = static_cast<ncclComm_t>(communicators().add(std::move(made)));
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  LOCKSTEP_NCCL;
  const auto found = communicators().find(communicator, "ncclCommGetAsyncError");
  if (found == nullptr) return ncclInvalidArgument;
  *state = lockstep::ptx::told(*found, found->ask());
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  LOCKSTEP_NCCL;
  const auto found = communicators().find(communicator, "ncclCommFinalize");
  return found == nullptr ? ncclInvalidArgument : lockstep::ptx::told(*found, found->finalize());
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  LOCKSTEP_NCCL;
  const auto found = communicators().find(communicator, "ncclCommDestroy");
  if (found == nullptr) return ncclInvalidArgument;
  if (!found->is_finalized()) cudaInterpreterProblem("ncclCommDestroy before ncclCommFinalize is over");
  found->abort();
  communicators().remove(communicator, "ncclCommDestroy");
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  LOCKSTEP_NCCL;
  const auto found = communicators().find(communicator, "ncclCommAbort");
  if (found == nullptr) return ncclInvalidArgument;
  found->abort();
  communicators().remove(communicator, "ncclCommAbort");
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_here().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  LOCKSTEP_NCCL;
  auto& group = group_here();
  if (group.depth == 0) return refused(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--group.depth > 0) return ncclSuccess;
  return lockstep::ptx::end_group();
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return lockstep::ptx::add({"ncclSend", FrameKind::message, from, nullptr, count, peer, stream}, type, communicator);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return lockstep::ptx::add({"ncclRecv", FrameKind::message, nullptr, to, count, peer, stream}, type, communicator);
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  return lockstep::ptx::add({"ncclAllGather", FrameKind::gather, from, to, count, 0, stream}, type, communicator);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return lockstep::ptx::add({"ncclBroadcast", FrameKind::broadcast, from, to, count, root, stream}, type, communicator);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
  const lockstep::ptx::NcclCall call{"ncclAllReduce", FrameKind::sum, from, to, count, 0, stream};
  if (operation != ncclSum) {
    LOCKSTEP_NCCL;
    return lockstep::ptx::unknown(call, "another operation than ncclSum");
  }
  return lockstep::ptx::add(call, type, communicator);
}

}  // extern "C"
