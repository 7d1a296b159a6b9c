#include "step/exec/worker_pool.hpp"

#include <algorithm>

#include "comm/transport/cores.hpp"
#include "device/threads.hpp"

namespace lockstep::exec {

WorkerPool::WorkerPool(int workers, NoThreads /*yet*/) : workers_(workers) {}

WorkerPool::WorkerPool(int workers) : WorkerPool(workers, NoThreads()) {
  device::use_one_thread();
  for (int i = 1; i < workers; ++i) threads_.emplace_back([this, i] { loop(i); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void WorkerPool::run_tasks(int tasks, const void* body, Call call) {
  {
    const std::lock_guard lock(mutex_);
    body_ = body;
    call_ = call;
    tasks_ = tasks;
    next_ = 0;
    error_ = nullptr;
    failed_ = false;
    active_ = threads_.size();
    ++round_;
  }
  start_.notify_all();
  device::use_one_thread();  // worker 0 is the caller, which may be another thread than the one that made the pool
  work(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return active_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

void WorkerPool::loop(int worker) {
  device::use_one_thread();
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
    }
    work(worker);
    const std::lock_guard lock(mutex_);
    if (--active_ == 0) done_.notify_one();
  }
}

void WorkerPool::work(int worker) {
  for (int task = next_++; task < tasks_; task = next_++) {
    try {
      call_(body_, worker, task);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      failed_ = true;
      next_ = tasks_;
    }
  }
}

int worker_count(int threads, const Communicator& communicator, const Device& device, std::size_t micro_batches) {
  const int workers = threads > 0 ? threads : device.default_workers(comm::own_cores(communicator));
  return std::clamp(workers, 1, std::max(1, static_cast<int>(micro_batches)));
}

int max_loader_threads(const Communicator& communicator) {
  return std::max(1, comm::own_cores(communicator) - 1);
}

}  // namespace lockstep::exec
