#include "exec/thread_counts.hpp"

#include <algorithm>

#include "device/threads.hpp"

namespace lockstep::exec {

namespace {

int own_cores(const Communicator& communicator) {
  return std::max(1, device::available_cores() / communicator.topology().local_size(communicator.rank()));
}

}  // namespace

int worker_count(int threads, const Communicator& communicator, const exec::Device& device, std::size_t shards) {
  const int workers = threads > 0 ? threads : device.default_workers(own_cores(communicator));
  return std::clamp(workers, 1, std::max(1, static_cast<int>(shards)));
}

int most_loader_threads(const Communicator& communicator) {
  return std::max(1, own_cores(communicator) - 1);
}

}  // namespace lockstep::exec
