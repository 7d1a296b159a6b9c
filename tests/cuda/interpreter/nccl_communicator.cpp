#include "cuda/interpreter/nccl_communicator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cuda/interpreter/nccl_kernel.hpp"

namespace lockstep::ptx {

namespace {

constexpr int kMaxQuestions = 3;  ///< a group is accepted after 0 to 3 calls of ncclCommGetAsyncError, in turn

/// As in NCCL, NCCL_HOSTID names this host.
Introduction introduction(int ranks) {
  Introduction own;
  own.ranks = static_cast<u32>(ranks);
  (void)cudaGetDevice(&own.device);
  if (const char* const given = std::getenv("NCCL_HOSTID")) {
    (void)std::snprintf(own.host, sizeof own.host, "%s", given);
  } else if (const char* const pretended = std::getenv("LOCKSTEP_HOST_ID")) {
    (void)std::snprintf(own.host, sizeof own.host, "%s", pretended);
  } else {
    (void)gethostname(own.host, sizeof own.host - 1);
  }
  return own;
}

}  // namespace

std::optional<NcclFault> NcclFault::asked(const char* variable, int rank) {
  const char* const given = std::getenv(variable);
  int of_rank = 0;
  unsigned long long group = 0;
  if (given == nullptr || std::sscanf(given, "%d:%llu", &of_rank, &group) != 2 || of_rank != rank) return std::nullopt;
  return NcclFault{group};
}

NcclCommunicator::NcclCommunicator(const std::string& id, int ranks, int rank)
    : ranks_(ranks),
      rank_(rank),
      is_deaf_(std::getenv("INTERPRETED_NCCL_DEAF") != nullptr),
      hangs_(NcclFault::asked("INTERPRETED_NCCL_HANGS", rank)),
      fails_(NcclFault::asked("INTERPRETED_NCCL_FAILS", rank)) {
  if (fails_ && fails_->group == 0) {
    (void)fail(ncclSystemError, "as INTERPRETED_NCCL_FAILS says");
    return;
  }
  if (hangs_ && hangs_->group == 0) return;  // the others wait for it
  meeting_.emplace(id, rank, introduction(ranks));
}

ncclResult_t NcclCommunicator::fail(ncclResult_t code, std::string what) {
  last_error_ = std::move(what);
  if (code != ncclInvalidArgument && code != ncclInvalidUsage) state_ = code;  // otherwise only the call has failed
  return code;
}

ncclResult_t NcclCommunicator::ask() {
  if (phase_ == Phase::meeting && state_ == ncclInProgress && meeting_) {
    const bool complete = meeting_->go_on();
    if (!meeting_->wrong().empty()) {
      const bool shared = meeting_->wrong().starts_with("Duplicate GPU");
      state_ = shared ? ncclInvalidUsage : ncclInternalError;
      last_error_ = meeting_->wrong();
    } else if (complete) {
      links_ = meeting_->take();
      meeting_.reset();
      phase_ = Phase::ready;
      state_ = ncclSuccess;
    }
  }
  if (!links_.empty()) go_on();
  return state_;
}

void NcclCommunicator::go_on() {
  each_other([&](int other) { link(other).go_on(); });
  look_for_lost_peers();
  if (state_ != ncclInProgress) return;
  if (phase_ == Phase::accepting && --questions_left_ <= 0) accept();
  if (phase_ != Phase::finalizing) return;
  if (groups_done_ < groups_) cudaInterpreterGoOn();
  bool all = groups_done_ == groups_;
  each_other([&](int other) { all = all && link(other).has_said_goodbye(); });
  if (!all) return;
  phase_ = Phase::finalized;
  state_ = ncclSuccess;
}

// NCCL notices this only if its connection to the other rank is a network; with shared memory or NVLink it keeps
// waiting.
void NcclCommunicator::look_for_lost_peers() {
  if (is_deaf_) return;
  if (state_ != ncclSuccess && state_ != ncclInProgress) return;
  each_other([&](int other) {
    if (link(other).is_lost()) (void)fail(ncclRemoteError, fmt::format("rank {} has closed its connection", other));
  });
}

ncclResult_t NcclCommunicator::require_ready() {
  if (phase_ == Phase::ready && state_ == ncclSuccess) return ncclSuccess;
  if (state_ == ncclInProgress) {
    return fail(ncclInvalidArgument, "Attempt to use communicator before the previous operation returned ncclSuccess");
  }
  if (state_ != ncclSuccess) return state_;
  return fail(ncclInvalidUsage, "the communicator is finalized or aborted");
}

ncclResult_t NcclCommunicator::put(std::vector<NcclCall> calls) {
  if (const ncclResult_t ready = require_ready(); ready != ncclSuccess) return ready;
  for (const NcclCall& call : calls) {
    if (stream_ == nullptr) stream_ = call.stream;
    if (call.stream == stream_) continue;
    cudaInterpreterProblem(fmt::format("{}: a communicator on two streams isn't known", call.name));
    return fail(ncclInvalidUsage, "two streams");
  }
  const auto is_collective = [](const NcclCall& call) { return call.kind != FrameKind::message; };
  const auto collectives = static_cast<u64>(std::count_if(calls.begin(), calls.end(), is_collective));
  if (collectives != 0 && collectives != calls.size()) {
    cudaInterpreterProblem("ncclGroupEnd: messages and collectives in one group aren't known");
    return fail(ncclInvalidUsage, "messages and collectives in one group");
  }
  next_ = std::make_shared<GroupKernel>(shared_from_this(), std::move(calls), ++groups_, collectives_);
  collectives_ += collectives;
  questions_left_ = static_cast<int>(groups_ % (kMaxQuestions + 1));
  phase_ = Phase::accepting;
  state_ = ncclInProgress;
  if (questions_left_ == 0) accept();
  return state_;
}

void NcclCommunicator::accept() {
  phase_ = Phase::ready;
  state_ = ncclSuccess;
  const std::shared_ptr<GroupKernel> kernel = std::exchange(next_, nullptr);
  if (cudaInterpreterPut(stream_, "NCCL", kernel) != cudaSuccess) {
    (void)fail(ncclUnhandledCudaError, "the stream takes no kernel");
  } else if (fails_ && fails_->group == groups_) {
    (void)fail(ncclSystemError, "as INTERPRETED_NCCL_FAILS says");
  }
}

ncclResult_t NcclCommunicator::finalize() {
  if (const ncclResult_t ready = require_ready(); ready != ncclSuccess) return ready;
  each_other([&](int other) {
    link(other).send({.kind = FrameKind::goodbye}, nullptr);
    link(other).go_on();
  });
  phase_ = Phase::finalizing;
  return state_ = ncclInProgress;
}

void NcclCommunicator::abort() {
  phase_ = Phase::aborted;
  state_ = ncclInvalidUsage;
  next_ = nullptr;
  meeting_.reset();
  links_.clear();
}

}  // namespace lockstep::ptx
