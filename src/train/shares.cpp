#include "train/shares.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "backend/device.hpp"
#include "backend/threads.hpp"

namespace lockstep::train {

namespace {

std::vector<double> weights_of_ranks(const Job& job, const Communicator& communicator) {
  const std::string model = backend::cpu_info().model;
  const Topology& topology = communicator.topology();
  std::vector<double> weights;
  for (const int host : topology.host_of) {
    const auto by_host = job.balance_weights.find(topology.host_names.at(static_cast<std::size_t>(host)));
    const auto by_model = job.balance_weights.find(model);
    weights.push_back(by_host != job.balance_weights.end()    ? by_host->second
                      : by_model != job.balance_weights.end() ? by_model->second
                                                              : 1.0);
  }
  return weights;
}

int own_cores(const Communicator& communicator) {
  return std::max(1, backend::available_cores() / communicator.topology().local_size(communicator.rank()));
}

}  // namespace

comm::Assignment first_assignment(const Job& job, const Communicator& communicator) {
  const int shards = static_cast<int>(job.shards);
  if (job.balance_weights.empty()) return comm::place_shards(comm::equal_counts(shards, communicator.size()));
  return comm::place_shards(comm::counts_by_weights(shards, weights_of_ranks(job, communicator)));
}

int worker_count(const Job& job, const Communicator& communicator, std::size_t shards) {
  const int threads = job.threads > 0 ? job.threads : own_cores(communicator);
  return std::clamp(threads, 1, std::max(1, static_cast<int>(shards)));
}

int most_loader_threads(const Communicator& communicator) {
  return std::max(1, own_cores(communicator) - 1);
}

}  // namespace lockstep::train
