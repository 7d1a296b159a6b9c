// The communication thread: the only one that calls MPI (MPI_THREAD_FUNNELED). Other threads post requests to its queue
// and wait for them with a deadline.
//
// It never blocks inside MPI: it starts non-blocking operations and tests them. Between tests it sleeps on its queue,
// for an eighth of the time since the last progress and at most half a millisecond; if nothing is pending, it sleeps
// until something is posted. So it costs little while workers compute, and adds little to any wait.
#pragma once

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/transport/mpi_folder.hpp"
#include "core/flight_recorder.hpp"
#include "core/spans.hpp"

namespace lockstep::comm {

/// One posted operation, which may be several MPI requests (long messages are sent in pieces).
class MpiOperation {
 public:
  /// Starts its MPI requests; called on the communication thread.
  std::function<void(std::vector<MPI_Request>&)> start;
  std::function<void()> notify;
  std::shared_ptr<FlightRecorder> recorder;
  std::uint64_t number = 0;  ///< its entry in the recorder

  /// Whether the bytes have arrived. `notify` may still be running: wait_until() and settled() wait for its end, so
  /// that what it refers to can be freed after them.
  bool done() const { return state_.load(std::memory_order_acquire) == State::done; }
  /// Waits until it is done, or failed with the error that check() throws. Returns false at the deadline.
  [[nodiscard]] bool wait_until(Clock::time_point until);
  /// Whether it is done or failed.
  [[nodiscard]] bool settled();

 private:
  friend class MpiThread;
  enum class State { pending, done, failed };
  void finish();
  void fail();
  std::atomic<State> state_{State::pending};
  std::size_t requests_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

class MpiThread {
 public:
  MpiThread();
  ~MpiThread();
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;
  int rank() const { return rank_; }
  int size() const { return size_; }
  void post(std::shared_ptr<MpiOperation> operation);
  /// Throws Error(infrastructure) once an MPI call has failed.
  void check();
  /// Calls MPI_Abort; exits the process if that has not returned after two seconds.
  [[noreturn]] void abort(int exit_code);
  /// After an error: from here on, no MPI call touches a posted buffer, and posted operations fail. Only abort() and
  /// close() still work. Waits for an MPI call under way, at most two seconds, however often it is called.
  void freeze();
  /// Ends MPI if all ranks do so within `patience`; else leaves it running.
  void close(std::chrono::milliseconds patience);

 private:
  void run();
  void start_mpi();
  void serve();
  bool call_mpi(std::unique_lock<std::mutex>& lock);
  void start_posted(const std::deque<std::shared_ptr<MpiOperation>>& posted);
  bool test_pending();
  void fail(const std::string& why, const std::deque<std::shared_ptr<MpiOperation>>& posted);
  void sleep(std::unique_lock<std::mutex>& lock, Clock::time_point last_progress);
  void end_mpi();

  MpiFolder folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<MpiOperation>> posted_;
  bool started_ = false, stop_ = false, ended_ = false;
  bool frozen_ = false, in_mpi_ = false;
  Clock::time_point patience_of_freeze_;
  int abort_code_ = -1;
  std::chrono::milliseconds patience_{};
  std::string error_;
  int rank_ = 0, size_ = 1;

  std::vector<MPI_Request> requests_;                  ///< pending; used by the communication thread only
  std::vector<std::shared_ptr<MpiOperation>> owners_;  ///< by request
  std::vector<int> completed_;
  std::thread thread_;
};

}  // namespace lockstep::comm
