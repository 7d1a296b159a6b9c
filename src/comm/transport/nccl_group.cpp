#include "comm/transport/nccl_group.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "comm/transport/agreement.hpp"
#include "device/cuda/gpu_stream.hpp"
#include "device/gpu/gpu_place.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr std::chrono::microseconds kPoll{20};
constexpr Milliseconds kPatienceAtStart{5'000};  ///< after the deadline, for the verdicts of the other ranks
constexpr Milliseconds kPatienceAtEnd{5'000};
constexpr const char* kStart = "ncclCommInitRankConfig";

/// NCCL's text for a code, with its last error message for this communicator (null: for the process).
std::string what_is(ncclResult_t code, ncclComm_t communicator) {
  const char* last = ncclGetLastError(communicator);
  const std::string said = last == nullptr ? "" : last;
  return said.empty() ? ncclGetErrorString(code) : fmt::format("{} ({})", ncclGetErrorString(code), said);
}

/// Throws unless the call has succeeded or, in a non-blocking communicator, is in progress.
void check_nccl(ncclResult_t code, const char* call, ncclComm_t communicator, const device::GpuPlace& place) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  throw device::gpu_error(place, call, static_cast<int>(code), what_is(code, communicator));
}

Error late(const device::GpuPlace& place, const char* what, Milliseconds timeout) {
  return {ExitCode::infrastructure,
          fmt::format("{}: {} is not done after {} s; a rank is gone or late, or NCCL's network settings do not fit "
                      "(NCCL_DEBUG=INFO tells more)",
                      place.text(), what, static_cast<double>(timeout.count()) / 1000)};
}

/// Groups calls; NCCL then does not wait for one before another.
class GroupScope {
 public:
  GroupScope(ncclComm_t communicator, const device::GpuPlace& place) : communicator_(communicator), place_(place) {
    check_nccl(ncclGroupStart(), "ncclGroupStart", communicator_, place_);
  }
  GroupScope(const GroupScope&) = delete;
  GroupScope& operator=(const GroupScope&) = delete;
  /// When an error is being unwound, the group must still be closed, or the next one would be nested in it.
  ~GroupScope() {
    if (open_) (void)ncclGroupEnd();
  }
  void end() {
    open_ = false;
    check_nccl(ncclGroupEnd(), "ncclGroupEnd", communicator_, place_);
  }

 private:
  ncclComm_t communicator_;
  const device::GpuPlace& place_;
  bool open_ = true;
};

}  // namespace

NcclGroup::NcclGroup(Communicator& ranks, device::Gpu& gpu, device::GpuPlace place, Milliseconds timeout)
    : gpu_(gpu), place_(std::move(place)), rank_(ranks.rank()), timeout_(timeout) {
  try {
    initialize(ranks, timeout);
  } catch (...) {
    abort();
    throw;
  }
}

void NcclGroup::initialize(Communicator& ranks, Milliseconds timeout) {
  // Rank 0's result is sent with the id: otherwise the others would wait for an id that never comes.
  Invitation invitation{};
  if (ranks.rank() == 0) invitation.made = ncclGetUniqueId(&invitation.id);
  ranks.broadcast(std::as_writable_bytes(std::span(&invitation, 1)), 0, {"NCCL's unique id", 0, timeout});
  const auto end = std::chrono::steady_clock::now() + timeout;
  bool joined = false;
  const auto verdict = [&]() -> std::optional<std::string> {
    try {
      if (!std::exchange(joined, true)) join(ranks, invitation);
      if (communicator_ == nullptr) return std::nullopt;  // without an id, rank 0 reports the error
      const ncclResult_t found = state();
      if (found == ncclInProgress && std::chrono::steady_clock::now() < end) return std::nullopt;
      if (found == ncclInProgress) throw late(place_, kStart, timeout);
      check_nccl(found, kStart, communicator_, place_);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const auto failure = agree(ranks, verdict, {"the start of NCCL", 0, timeout}, kPatienceAtStart);
  if (!failure) return;
  if (failure->rank == ranks.rank()) throw Error(ExitCode::infrastructure, failure->what);
  throw Error(ExitCode::infrastructure,
              fmt::format("{}: expected NCCL to start on all ranks, found that it failed on rank {}: {}", place_.text(),
                          failure->rank, failure->what));
}

void NcclGroup::join(Communicator& ranks, const Invitation& invitation) {
  if (invitation.made != ncclSuccess) {
    if (ranks.rank() == 0) check_nccl(invitation.made, "ncclGetUniqueId", nullptr, place_);
    return;
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check_nccl(ncclCommInitRankConfig(&communicator_, ranks.size(), invitation.id, ranks.rank(), &config), kStart,
             communicator_, place_);
}

NcclGroup::~NcclGroup() {
  if (communicator_ == nullptr) return;
  // Finalizing waits for the other ranks; if they are gone, abort() must end it.
  try {
    const ncclResult_t begun = ncclCommFinalize(communicator_);
    if ((begun == ncclSuccess || begun == ncclInProgress) && poll(kPatienceAtEnd) == ncclSuccess) {
      (void)ncclCommDestroy(communicator_);
      return;
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): it is aborted below
  }
  abort();
}

void NcclGroup::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return;
  (void)ncclCommAbort(communicator_);
  communicator_ = nullptr;
}

void NcclGroup::enter(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  place_.step = step;
}

void NcclGroup::require_alive(const char* call) const {
  if (communicator_ != nullptr) return;
  throw Error(ExitCode::infrastructure, fmt::format("{}: {} after the group was aborted", place_.text(), call));
}

ncclResult_t NcclGroup::state() {
  const std::lock_guard lock(mutex_);
  require_alive("a call under way");
  ncclResult_t found = ncclInProgress;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &found);
  return asked == ncclSuccess ? found : asked;
}

ncclResult_t NcclGroup::poll(Milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const ncclResult_t found = state();
    if (found != ncclInProgress || std::chrono::steady_clock::now() >= end) return found;
    std::this_thread::sleep_for(kPoll);
  }
}

void NcclGroup::settle(const char* call) {
  const ncclResult_t found = poll(timeout_);
  if (found == ncclInProgress) throw late(place_, call, timeout_);
  check_nccl(found, call, nullptr, place_);
}

cudaStream_t NcclGroup::at(Stream stream) const {
  return gpu_.kernel_stream(stream)->cuda();
}

template <class Calls>
void NcclGroup::launch(const char* what, const Calls& calls) {
  {
    const std::lock_guard lock(mutex_);
    require_alive(what);
    GroupScope group(communicator_, place_);
    calls();
    group.end();
  }
  settle(what);
}

void NcclGroup::send_receive(std::span<const Message> sends, std::span<const Message> receives, Stream stream) {
  if (sends.empty() && receives.empty()) return;
  launch("the all-reduce of slices", [&] {
    for (const Message& send : sends) {
      check_nccl(
          ncclSend(send.memory, static_cast<std::size_t>(send.count), ncclFloat, send.peer, communicator_, at(stream)),
          "ncclSend", communicator_, place_);
    }
    for (const Message& receive : receives) {
      check_nccl(ncclRecv(receive.memory, static_cast<std::size_t>(receive.count), ncclFloat, receive.peer,
                          communicator_, at(stream)),
                 "ncclRecv", communicator_, place_);
    }
  });
}

// One call if slices are equal, for which NCCL has faster algorithms; else one per owner, in a group.
void NcclGroup::all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) {
  const std::int64_t first = bounds[1] - bounds[0];
  bool equal = true;
  for (std::size_t owner = 1; owner + 1 < bounds.size(); ++owner) {
    equal = equal && bounds[owner + 1] - bounds[owner] == first;
  }
  launch("the gathering of slices", [&] {
    if (equal) {
      check_nccl(ncclAllGather(bucket + rank_ * first, bucket, static_cast<std::size_t>(first), ncclFloat,
                               communicator_, at(stream)),
                 "ncclAllGather", communicator_, place_);
      return;
    }
    for (std::size_t owner = 0; owner + 1 < bounds.size(); ++owner) {
      float* slice = bucket + bounds[owner];
      const std::size_t count = bounds[owner + 1] - bounds[owner];
      if (count == 0) continue;
      check_nccl(ncclBroadcast(slice, slice, count, ncclFloat, static_cast<int>(owner), communicator_, at(stream)),
                 "ncclBroadcast", communicator_, place_);
    }
  });
}

void NcclGroup::broadcast(std::span<const Owned> list, Stream stream) {
  if (list.empty()) return;
  launch("the broadcast of slices", [&] {
    for (const Owned& of : list) {
      check_nccl(ncclBroadcast(of.memory, of.memory, static_cast<std::size_t>(of.count), ncclFloat, of.owner,
                               communicator_, at(stream)),
                 "ncclBroadcast", communicator_, place_);
    }
  });
}

void NcclGroup::all_reduce_sum(float* values, std::int64_t count, Stream stream) {
  launch("the all-reduce", [&] {
    const std::size_t elements = count;
    check_nccl(ncclAllReduce(values, values, elements, ncclFloat, ncclSum, communicator_, at(stream)), "ncclAllReduce",
               communicator_, place_);
  });
}

void NcclGroup::check(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  require_alive(operation.name);
  ncclResult_t found = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(communicator_, &found), "ncclCommGetAsyncError", communicator_, place_);
  check_nccl(found, operation.name, communicator_, place_);
}

}  // namespace lockstep::comm

/// The caller owns the result.
extern "C" __attribute__((visibility("default"))) lockstep::comm::GpuTransport* lockstep_cuda_make_transport(
    lockstep::Communicator& ranks, lockstep::device::Gpu& gpu, const lockstep::device::GpuPlace& place,
    std::chrono::milliseconds timeout) {
  return new lockstep::comm::NcclGroup(ranks, gpu, place, timeout);
}

extern "C" __attribute__((visibility("default"))) void lockstep_cuda_transport_library(std::string& text) {
  int version = 0;  // of the loaded library: 22803 is 2.28.3
  if (ncclGetVersion(&version) != ncclSuccess) return;
  text = fmt::format("NCCL {}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}
