#include "comm/transport/mpi_thread.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>

#include "core/say.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kAlert{50};  ///< after any progress, the thread does not sleep for this long
constexpr microseconds kLongestSleep{500};
constexpr milliseconds kAbortPatience{2000};
constexpr const char* kFrozen = "an error has ended this rank's communication";

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(ExitCode::infrastructure, fmt::format("{}: {}", call, text.data()));
}

}  // namespace

bool MpiOperation::wait_until(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [&] { return state_ != State::pending; });
}

bool MpiOperation::settled() {
  const std::lock_guard lock(mutex_);
  return state_ != State::pending;
}

// Sets done() before `notify`, whose code reads it; waiting and destroying threads take the lock, so they come last.
void MpiOperation::finish() {
  if (recorder) recorder->finish(number);
  {
    const std::lock_guard lock(mutex_);
    state_.store(State::done, std::memory_order_release);
    if (notify) notify();
  }
  changed_.notify_all();
}

void MpiOperation::fail() {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::pending) state_.store(State::failed, std::memory_order_release);
  }
  changed_.notify_all();
}

MpiThread::MpiThread() {
  int initialized = 0;
  if (MPI_Initialized(&initialized) == MPI_SUCCESS && initialized != 0) {
    throw Error(ExitCode::usage,
                "run_on_mpi: expected a program in which MPI has not started, found that it has; leave MPI_Init to "
                "run_on_mpi, or give train_job() a Communicator of your own");
  }
  thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return started_ || ended_; });
  if (ended_) {
    lock.unlock();
    thread_.join();
    throw Error(ExitCode::infrastructure, fmt::format("MPI does not start: {}", error_));
  }
}

MpiThread::~MpiThread() {
  close(milliseconds(0));
}

void MpiThread::post(std::shared_ptr<MpiOperation> operation) {
  {
    const std::lock_guard lock(mutex_);
    if (frozen_) {
      operation->fail();
      return;
    }
    posted_.push_back(std::move(operation));
  }
  changed_.notify_all();
}

void MpiThread::check() {
  const std::lock_guard lock(mutex_);
  if (!error_.empty()) throw Error(ExitCode::infrastructure, error_);
}

void MpiThread::abort(int exit_code) {
  {
    const std::lock_guard lock(mutex_);
    abort_code_ = exit_code;
  }
  changed_.notify_all();
  std::this_thread::sleep_for(kAbortPatience);  // MPI_Abort does not return
  _exit(exit_code);
}

void MpiThread::close(milliseconds patience) {
  {
    const std::lock_guard lock(mutex_);
    patience_ = patience;
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void MpiThread::run() {
  prctl(PR_SET_NAME, "lockstep-mpi");
  prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds; the default of 50 us would double short sleeps
  try {
    start_mpi();
    serve();
    end_mpi();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    error_ = error.what();
  }
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

void MpiThread::start_mpi() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  if (provided < MPI_THREAD_FUNNELED) {
    throw Error(ExitCode::infrastructure, "this MPI has no MPI_THREAD_FUNNELED");
  }
  {
    const std::lock_guard lock(mutex_);
    started_ = true;
  }
  changed_.notify_all();
}

void MpiThread::serve() {
  auto last_progress = Clock::now();
  std::unique_lock lock(mutex_);
  while (true) {
    if (abort_code_ >= 0) {
      folder_.remove();  // before MPI_Abort, which does not return
      MPI_Abort(MPI_COMM_WORLD, abort_code_);
    }
    if (frozen_) {
      lock.unlock();
      fail(kFrozen, {});
      lock.lock();
      changed_.wait(lock, [&] { return stop_ || abort_code_ >= 0; });
    }
    if (stop_ && (posted_.empty() || frozen_)) return;
    if (frozen_) continue;
    if (call_mpi(lock)) last_progress = Clock::now();
    if (!frozen_) sleep(lock, last_progress);
  }
}

// Starts posted operations and tests pending ones, without the lock; returns whether there was any progress.
bool MpiThread::call_mpi(std::unique_lock<std::mutex>& lock) {
  std::deque<std::shared_ptr<MpiOperation>> posted;
  posted.swap(posted_);
  in_mpi_ = true;
  lock.unlock();
  bool moved = !posted.empty();
  try {
    start_posted(posted);
    moved = test_pending() || moved;
  } catch (const std::exception& error) {
    fail(error.what(), posted);
  }
  lock.lock();
  in_mpi_ = false;
  if (frozen_) changed_.notify_all();
  return moved;
}

// All waits fail now, and later calls do not wait for this thread: it only serves abort() and close().
void MpiThread::fail(const std::string& why, const std::deque<std::shared_ptr<MpiOperation>>& posted) {
  std::deque<std::shared_ptr<MpiOperation>> not_started;
  {
    const std::lock_guard lock(mutex_);
    if (error_.empty()) error_ = why;
    frozen_ = true;
    in_mpi_ = false;
    not_started.swap(posted_);
  }
  changed_.notify_all();
  for (const auto& operation : owners_) operation->fail();
  for (const auto& operation : posted) operation->fail();
  for (const auto& operation : not_started) operation->fail();
  requests_.clear();
  owners_.clear();
}

void MpiThread::freeze() {
  std::unique_lock lock(mutex_);
  if (!frozen_) patience_of_freeze_ = Clock::now() + kAbortPatience;
  frozen_ = true;
  if (error_.empty()) error_ = kFrozen;
  changed_.notify_all();
  changed_.wait_until(lock, patience_of_freeze_, [&] { return !in_mpi_; });
}

void MpiThread::start_posted(const std::deque<std::shared_ptr<MpiOperation>>& posted) {
  for (const auto& operation : posted) {
    std::vector<MPI_Request> requests;
    if (operation->recorder) operation->recorder->start(operation->number);
    operation->start(requests);
    operation->requests_ = requests.size();
    if (requests.empty()) operation->finish();
    for (const MPI_Request request : requests) {
      requests_.push_back(request);
      owners_.push_back(operation);
    }
  }
}

bool MpiThread::test_pending() {
  if (requests_.empty()) return false;
  completed_.resize(requests_.size());
  int count = 0;
  check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(),
                         MPI_STATUSES_IGNORE),
            "MPI_Testsome");
  if (count <= 0) return false;
  for (int i = 0; i < count; ++i) {
    const auto& owner = owners_[completed_[i]];
    if (--owner->requests_ == 0) owner->finish();
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    owners_[kept++] = std::move(owners_[i]);
  }
  requests_.resize(kept);
  owners_.resize(kept);
  return true;
}

void MpiThread::sleep(std::unique_lock<std::mutex>& lock, Clock::time_point last_progress) {
  const auto called = [&] { return !posted_.empty() || stop_ || frozen_ || abort_code_ >= 0; };
  if (requests_.empty()) {
    changed_.wait(lock, called);
    return;
  }
  const auto idle = Clock::now() - last_progress;
  if (idle < kAlert) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    return;
  }
  changed_.wait_for(lock, std::min<Clock::duration>(idle / 8, kLongestSleep), called);
}

// MPI_Finalize waits for all ranks, without a deadline. So it is called only after a barrier with a deadline in which
// all ranks have announced it.
void MpiThread::end_mpi() {
  if (frozen_) return;
  MPI_Request barrier = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(MPI_COMM_WORLD, &barrier), "MPI_Ibarrier");
  const auto start = Clock::now();
  while (true) {
    int done = 0;
    check_mpi(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) break;
    const auto waited = Clock::now() - start;
    if (waited > patience_) {
      say("lockstep: rank {}: the other ranks do not end; leaving without MPI_Finalize\n", rank_);
      return;
    }
    std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / 8, microseconds(20), milliseconds(5)));
  }
  check_mpi(MPI_Finalize(), "MPI_Finalize");
}

}  // namespace lockstep::comm
