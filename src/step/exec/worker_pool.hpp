// The workers of a CPU rank: threads that take whole tasks (micro-batches, chunks) from a list; and how many threads a
// rank has.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/communicator.hpp"
#include "step/exec/device.hpp"

namespace lockstep::exec {

/// With one worker, everything runs on the caller's thread. Which worker takes which task is not deterministic: nothing
/// that a task computes may depend on it.
class WorkerPool {
 public:
  /// If a thread cannot be made, those before it are ended: the exception finds a whole object, with a destructor.
  explicit WorkerPool(int workers);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int size() const { return workers_; }
  /// Whether a task of this run() has failed. A task that waits should check it: run() returns only when all have
  /// ended.
  const std::atomic<bool>& failed() const { return failed_; }

  /// Calls body(int worker, int task) for each task in 0 ... tasks - 1 and returns when all are done. Tasks are handed
  /// out in order. Rethrows the first exception; the remaining tasks are then skipped. Allocates nothing.
  template <class Body>
  void run(int tasks, const Body& body) {
    run_tasks(tasks, &body,
              [](const void* erased, int worker, int task) { (*static_cast<const Body*>(erased))(worker, task); });
  }

 private:
  struct NoThreads {};
  WorkerPool(int workers, NoThreads yet);
  using Call = void (*)(const void* body, int worker, int task);
  void run_tasks(int tasks, const void* body, Call call);
  void loop(int worker);
  void work(int worker);

  int workers_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  std::uint64_t round_ = 0;
  int active_ = 0;
  bool stop_ = false;
  int tasks_ = 0;
  std::atomic<int> next_{0};
  std::atomic<bool> failed_{false};
  const void* body_ = nullptr;
  Call call_ = nullptr;
  std::exception_ptr error_;
};

/// The job's `threads`, or, if that is 0, the device's default for this rank's share of its host's cores; at most the
/// number of its micro-batches.
[[nodiscard]] int worker_count(int threads, const Communicator& communicator, const Device& device,
                               std::size_t micro_batches);

/// Background threads that may read and decode for this rank: one less than its share of this host's cores, but at
/// least 1.
[[nodiscard]] int max_loader_threads(const Communicator& communicator);

}  // namespace lockstep::exec
