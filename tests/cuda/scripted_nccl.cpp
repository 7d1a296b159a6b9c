#include "cuda/scripted_nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "device/cuda/handles.hpp"

namespace lockstep::comm {

namespace {

constexpr std::chrono::seconds kPatience{20};

ScriptedNccl* current_nccl = nullptr;

/// The calls that the calling thread has put into its group.
struct Group {
  int depth = 0;
  std::vector<ScriptedNccl::Part> parts;
};
thread_local Group group;

bool moves(const std::string& call) {
  for (const char* name : {"ncclAllGather", "ncclBroadcast", "ncclAllReduce"}) {
    if (call.starts_with(name)) return true;
  }
  return false;
}

}  // namespace

ScriptedNccl::ScriptedNccl() : before_(std::exchange(current_nccl, this)) {}

ScriptedNccl::~ScriptedNccl() {
  current_nccl = before_;
}

ScriptedNccl& ScriptedNccl::current() {
  return *current_nccl;
}

void ScriptedNccl::script(int rank, const std::string& function, std::vector<ncclResult_t> results) {
  const std::lock_guard lock(mutex_);
  script_[{rank, function}] = {results.begin(), results.end()};
}

std::vector<std::string> ScriptedNccl::calls(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(rank);
  return found == calls_.end() ? std::vector<std::string>{} : found->second;
}

int ScriptedNccl::count(int rank, const std::string& function) const {
  const auto made = calls(rank);
  return static_cast<int>(
      std::count_if(made.begin(), made.end(), [&](const auto& call) { return call.starts_with(function); }));
}

std::vector<std::string> ScriptedNccl::collectives(int rank) const {
  auto found = calls(rank);
  std::erase_if(found, [](const auto& call) { return !moves(call); });
  return found;
}

std::vector<std::string> ScriptedNccl::mistakes() const {
  const std::lock_guard lock(mutex_);
  auto found = mistakes_;
  for (const auto& [way, mails] : mail_) {
    for (const auto& mail : mails) {
      found.push_back(fmt::format("rank {} does not take {} from rank {}", way.second, mail->what, way.first));
    }
  }
  return found;
}

std::size_t ScriptedNccl::alive() const {
  const std::lock_guard lock(mutex_);
  return alive_.size();
}

ncclResult_t ScriptedNccl::next(int rank, const std::string& function) {
  const auto found = script_.find({rank, function});
  if (found == script_.end()) return ncclSuccess;
  const ncclResult_t result = found->second.front();
  if (found->second.size() > 1) found->second.pop_front();
  return result;
}

void ScriptedNccl::note(int rank, const std::string& call) {
  calls_[rank].push_back(call);
}

void ScriptedNccl::mistake(const std::string& what) {
  const std::lock_guard lock(mutex_);
  mistakes_.push_back(what);
}

bool ScriptedNccl::is_alive(ncclComm_t communicator, const std::string& function) {
  if (alive_.contains(communicator)) return true;
  mistakes_.push_back(function + " of a communicator that is not there");
  return false;
}

ncclResult_t ScriptedNccl::make_id() {
  const std::lock_guard lock(mutex_);
  note(0, "ncclGetUniqueId");
  return next(0, "ncclGetUniqueId");
}

ncclResult_t ScriptedNccl::make(ncclComm_t* communicator, int ranks, int rank, bool blocking) {
  const std::lock_guard lock(mutex_);
  note(rank, "ncclCommInitRankConfig");
  if (blocking) mistakes_.push_back("a communicator that blocks");
  const ncclResult_t result = next(rank, "ncclCommInitRankConfig");
  if (result != ncclSuccess && result != ncclInProgress) return result;
  made_.push_back(std::make_unique<ncclComm>(ncclComm{.rank = rank, .ranks = ranks, .under_way = true}));
  *communicator = made_.back().get();
  alive_.insert(*communicator);
  return result;
}

ncclResult_t ScriptedNccl::ask(ncclComm_t communicator, ncclResult_t* state) {
  const std::lock_guard lock(mutex_);
  if (!is_alive(communicator, "ncclCommGetAsyncError")) return ncclInvalidArgument;
  *state = next(communicator->rank, "state");
  if (*state != ncclInProgress) communicator->under_way = false;
  return next(communicator->rank, "ncclCommGetAsyncError");
}

ncclResult_t ScriptedNccl::finalize(ncclComm_t communicator) {
  const std::lock_guard lock(mutex_);
  if (!is_alive(communicator, "ncclCommFinalize")) return ncclInvalidArgument;
  note(communicator->rank, "ncclCommFinalize");
  if (communicator->under_way) mistakes_.emplace_back("ncclCommFinalize while a call is under way");
  communicator->under_way = communicator->finalized = true;
  return next(communicator->rank, "ncclCommFinalize");
}

ncclResult_t ScriptedNccl::end(ncclComm_t communicator, const std::string& function) {
  const std::lock_guard lock(mutex_);
  if (!is_alive(communicator, function)) return ncclInvalidArgument;
  note(communicator->rank, function);
  const bool ready = communicator->finalized && !communicator->under_way;
  if (function == "ncclCommDestroy" && !ready) mistakes_.push_back(function + " before ncclCommFinalize is over");
  alive_.erase(communicator);
  return next(communicator->rank, function);
}

void ScriptedNccl::start_group() {
  ++group.depth;
}

ncclResult_t ScriptedNccl::put(const std::string& function, const std::string& call, Part part) {
  const std::lock_guard lock(mutex_);
  if (!is_alive(part.communicator, function)) return ncclInvalidArgument;
  const int rank = part.communicator->rank;
  note(rank, call);
  if (part.communicator->under_way) mistakes_.push_back(call + " while a call is under way");
  if (group.depth != 1) mistakes_.push_back(fmt::format("{} in {} groups", call, group.depth));
  const ncclResult_t result = next(rank, function);
  if (result == ncclSuccess || result == ncclInProgress) group.parts.push_back(std::move(part));
  return result;
}

ncclResult_t ScriptedNccl::end_group() {
  std::unique_lock lock(mutex_);
  if (group.depth == 0) mistakes_.emplace_back("ncclGroupEnd without ncclGroupStart");
  group.depth = 0;
  const auto parts = std::exchange(group.parts, {});
  if (parts.empty()) return ncclSuccess;
  ncclComm_t communicator = parts[0].communicator;
  note(communicator->rank, "ncclGroupEnd");
  const ncclResult_t result = next(communicator->rank, "ncclGroupEnd");
  if (result != ncclSuccess && result != ncclInProgress) return result;
  communicator->under_way = result == ncclInProgress;
  move(parts, lock);
  return result;
}

void ScriptedNccl::move(const std::vector<Part>& parts, std::unique_lock<std::mutex>& lock) {
  std::vector<std::shared_ptr<Mail>> sent;
  for (const Part& part : parts) {
    for (const auto& send : part.sends) {
      sent.push_back(std::make_shared<Mail>(Mail{part.what, send.values}));
      mail_[{part.communicator->rank, send.to}].push_back(sent.back());
    }
  }
  changed_.notify_all();
  const auto wait = [&](const auto& until, const std::string& what) {
    if (!changed_.wait_for(lock, kPatience, until)) mistakes_.push_back(what);
    return until();
  };
  for (const Part& part : parts) {
    const int rank = part.communicator->rank;
    for (const auto& receive : part.receives) {
      auto& mails = mail_[{receive.from, rank}];
      const auto come = [&] { return !mails.empty(); };
      if (!wait(come, fmt::format("rank {} waits for {} of rank {}", rank, part.what, receive.from))) return;
      const auto mail = mails.front();
      mails.pop_front();
      mail->taken = true;
      changed_.notify_all();
      if (mail->what != part.what || mail->values.size() != receive.values.size()) {
        mistakes_.push_back(fmt::format("rank {} sends {} of {} elements, rank {} takes {} of {}", receive.from,
                                        mail->what, mail->values.size(), rank, part.what, receive.values.size()));
        return;
      }
      for (std::size_t i = 0; i < mail->values.size(); ++i) {
        receive.values[i] = receive.add ? receive.values[i] + mail->values[i] : mail->values[i];
      }
    }
  }
  const auto taken = [&] {
    return std::all_of(sent.begin(), sent.end(), [](const auto& mail) { return mail->taken; });
  };
  (void)wait(taken, fmt::format("rank {} waits until others take what it sends", parts[0].communicator->rank));
}

}  // namespace lockstep::comm

namespace {

using lockstep::comm::ScriptedNccl;
using Part = ScriptedNccl::Part;

std::vector<float> copy_of(const void* memory, std::size_t count) {
  const auto* const first = static_cast<const float*>(memory);
  return {first, first + count};
}

std::span<float> at(void* memory, std::size_t first, std::size_t count) {
  return {static_cast<float*>(memory) + first, count};
}

/// Calls `body` for all other ranks.
template <class Body>
void each_other(ncclComm_t communicator, const Body& body) {
  for (int other = 0; other < communicator->ranks; ++other) {
    if (other != communicator->rank) body(other);
  }
}

void only_floats(ncclDataType_t type) {
  if (type != ncclFloat) ScriptedNccl::current().mistake("something else than floats");
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 7, sizeof *id);
  return ScriptedNccl::current().make_id();
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const std::string bytes(sizeof id, '\7');
  if (std::memcmp(&id, bytes.data(), sizeof id) != 0) ScriptedNccl::current().mistake("not the id of rank 0");
  return ScriptedNccl::current().make(communicator, ranks, rank, config->blocking != 0);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  return ScriptedNccl::current().ask(communicator, state);
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  return ScriptedNccl::current().finalize(communicator);
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  return ScriptedNccl::current().end(communicator, "ncclCommDestroy");
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  return ScriptedNccl::current().end(communicator, "ncclCommAbort");
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "a remote error" : "an error";
}

const char* ncclGetLastError(ncclComm_t /*communicator*/) {
  return "as the script says";
}

ncclResult_t ncclGroupStart() {
  ScriptedNccl::current().start_group();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  return ScriptedNccl::current().end_group();
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t /*stream*/) {
  only_floats(type);
  Part part{communicator, "a message", {{peer, copy_of(from, count)}}, {}};
  return ScriptedNccl::current().put("ncclSend", fmt::format("ncclSend {} to {}", count, peer), std::move(part));
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t /*stream*/) {
  only_floats(type);
  Part part{communicator, "a message", {}, {{peer, at(to, 0, count)}}};
  return ScriptedNccl::current().put("ncclRecv", fmt::format("ncclRecv {} from {}", count, peer), std::move(part));
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t /*stream*/) {
  only_floats(type);
  const auto first_of = [&](int rank) { return static_cast<std::size_t>(rank) * count; };
  if (from != at(to, first_of(communicator->rank), count).data()) {
    ScriptedNccl::current().mistake("ncclAllGather that is not in place");
  }
  Part part{communicator, "ncclAllGather", {}, {}};
  each_other(communicator, [&](int other) {
    part.sends.push_back({other, copy_of(from, count)});
    part.receives.push_back({other, at(to, first_of(other), count)});
  });
  return ScriptedNccl::current().put("ncclAllGather", fmt::format("ncclAllGather {}", count), std::move(part));
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t /*stream*/) {
  only_floats(type);
  if (from != to) ScriptedNccl::current().mistake("ncclBroadcast that is not in place");
  Part part{communicator, fmt::format("ncclBroadcast of {}", root), {}, {}};
  if (communicator->rank == root) {
    each_other(communicator, [&](int other) { part.sends.push_back({other, copy_of(from, count)}); });
  } else {
    part.receives.push_back({root, at(to, 0, count)});
  }
  return ScriptedNccl::current().put("ncclBroadcast", fmt::format("ncclBroadcast {} from {}", count, root),
                                     std::move(part));
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t /*stream*/) {
  only_floats(type);
  if (from != to) ScriptedNccl::current().mistake("ncclAllReduce that is not in place");
  if (operation != ncclSum) ScriptedNccl::current().mistake("ncclAllReduce that is no sum");
  Part part{communicator, "ncclAllReduce", {}, {}};
  each_other(communicator, [&](int other) {
    part.sends.push_back({other, copy_of(from, count)});
    part.receives.push_back({other, at(to, 0, count), true});
  });
  return ScriptedNccl::current().put("ncclAllReduce", fmt::format("ncclAllReduce {}", count), std::move(part));
}

// A GpuStream has handles of libraries, which need a GPU; nothing here uses them.
namespace lockstep::device {

CublasLt make_cublas_lt(const GpuPlace& /*place*/) {
  return CublasLt(nullptr);
}

Cudnn make_cudnn(cudaStream_t /*stream*/, const GpuPlace& /*place*/) {
  return Cudnn(nullptr);
}

}  // namespace lockstep::device
