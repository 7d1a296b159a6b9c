#include "data/readers/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep::data {
namespace {

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::clamp(CPU_COUNT(&set), 1, 8) : 1;
}

}  // namespace

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  constexpr std::size_t kGrain = 64;
  const std::size_t wanted = static_cast<std::size_t>(threads > 0 ? threads : usable_processors());
  const std::size_t used = std::clamp<std::size_t>((count + kGrain - 1) / kGrain, 1, wanted);
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t begin = 0; (begin = next.fetch_add(kGrain)) < count;) {
        for (std::size_t i = begin; i < std::min(count, begin + kGrain); ++i) body(i);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < used; ++i) others.emplace_back(work);
  work();
  others.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lockstep::data
