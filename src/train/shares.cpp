#include "train/shares.hpp"

#include <algorithm>

#include "backend/threads.hpp"

namespace lockstep::train {

namespace {

int own_cores(const Communicator& communicator) {
  return std::max(1, backend::available_cores() / communicator.topology().local_size(communicator.rank()));
}

}  // namespace

int worker_count(const Job& job, const Communicator& communicator, std::size_t shards) {
  const int threads = job.threads > 0 ? job.threads : own_cores(communicator);
  return std::clamp(threads, 1, std::max(1, static_cast<int>(shards)));
}

int most_loader_threads(const Communicator& communicator) {
  return std::max(1, own_cores(communicator) - 1);
}

}  // namespace lockstep::train
