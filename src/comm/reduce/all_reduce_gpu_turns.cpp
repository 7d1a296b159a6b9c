// The order of what the transport's thread enqueues: exchanges of buckets, and turns at fixed places among them.
#include <utility>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

std::optional<GpuAllReduce::Next> GpuAllReduce::next() const {
  if (!running_ || aborted_) return std::nullopt;
  const std::size_t exchange = next_;
  const bool is_last = exchange == exchanges_.size();
  if (next_turn_ < turn_count_ && (is_last || next_turn_ < turns_before_[exchange])) {
    if (!turns_->ready(next_turn_)) return std::nullopt;
    return Next{true, next_turn_};
  }
  if (is_last || missing_[exchange] > 0) return std::nullopt;
  return Next{false, next_};
}

bool GpuAllReduce::all_issued() const {
  return next_ == static_cast<int>(exchanges_.size()) && next_turn_ == turn_count_;
}

void GpuAllReduce::use_turns(GpuTurns* turns) {
  std::unique_lock lock(mutex_);
  const bool unfinished = turns == nullptr && !all_issued() && turn_count_ > 0;
  if (turns != nullptr) {
    turns_ = turns;
    return;
  }
  running_ = false;
  lock.unlock();
  if (unfinished) abort();  // other ranks may never send what this rank's GPU waits for
  lock.lock();
  changed_.wait(lock, [&] { return !is_sending_; });
  turns_ = nullptr;
  lock.unlock();
  gpu_.record(passed_, transport_stream_);
  gpu_.wait(passed_);
}

void GpuAllReduce::begin_turns(int count, std::vector<int> before) {
  {
    const std::lock_guard lock(mutex_);
    LOCKSTEP_CHECK(transport_ != nullptr && turns_ != nullptr && !running_,
                   "turns begin between ranks, one after the other");
    if (error_) std::rethrow_exception(error_);
    turn_count_ = count;
    next_turn_ = 0;
    LOCKSTEP_CHECK(before.empty() || before.size() == exchanges_.size(), "a place among the turns for each exchange");
    if (before.empty()) next_ = exchanges_.size();
    turns_before_ = std::move(before);
    running_ = true;
  }
  changed_.notify_all();
}

// Under the mutex, because the thread asks ready() under it and sleeps if that is false.
void GpuAllReduce::turn_may_be_ready() {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void GpuAllReduce::end_turns(const char* name, const char* awaited) {
  try {
    wait_until_issued();
    gpu_.record(passed_, transport_stream_);
  } catch (...) {
    abort();
    throw;
  }
  wait_for(passed_, name, awaited);
}

}  // namespace lockstep::comm
