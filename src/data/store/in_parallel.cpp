#include "data/store/in_parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::store {

namespace {

constexpr std::size_t kThreads = 4;
constexpr std::chrono::milliseconds kLook{50};

class Transfers {
 public:
  Transfers(std::size_t count, const std::function<void(std::size_t, const OnBytes&)>& transfer)
      : count_(count), transfer_(transfer), running_(std::min(count, kThreads)) {
    for (std::size_t i = running_; i > 0; --i) threads_.emplace_back([this] { run(); });
  }
  ~Transfers() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
  }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  void wait(const OnBytes& on_bytes) {
    std::unique_lock lock(mutex_);
    for (std::uint64_t seen = 0; !changed_.wait_for(lock, kLook, [this] { return running_ == 0; });) {
      if (!on_bytes || std::exchange(seen, moved_.load()) == moved_) continue;
      lock.unlock();
      on_bytes();
      lock.lock();
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void run() {
    try {
      const OnBytes note = [this] {
        if (stop_) throw std::runtime_error("another transfer has failed");
        ++moved_;
      };
      for (std::size_t i = next_++; i < count_ && !stop_; i = next_++) transfer_(i, note);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  const std::size_t count_;
  const std::function<void(std::size_t, const OnBytes&)>& transfer_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> moved_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace

void in_parallel(std::size_t count, const OnBytes& on_bytes,
                 const std::function<void(std::size_t, const OnBytes&)>& transfer) {
  if (count == 1) return transfer(0, on_bytes);
  Transfers(count, transfer).wait(on_bytes);
}

}  // namespace lockstep::store
