// A rank's share of its host's cores.
#include "step/exec/worker_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/threads.hpp"

namespace lockstep::exec {
namespace {

/// max_loader_threads() of each rank.
std::vector<int> loader_threads(int ranks, const std::vector<int>& host_of = {}) {
  std::vector<int> threads(static_cast<std::size_t>(ranks));
  run_in_threads(
      ranks,
      [&](Communicator& communicator) {
        threads[static_cast<std::size_t>(communicator.rank())] = max_loader_threads(communicator);
      },
      host_of);
  return threads;
}

TEST(Shares, TheRanksOfAHostShareItsCoresForLoading) {
  const int cores = device::available_cores();
  EXPECT_EQ(loader_threads(1), std::vector<int>{std::max(1, cores - 1)});
  EXPECT_EQ(loader_threads(2), std::vector<int>(2, std::max(1, cores / 2 - 1)));
  EXPECT_EQ(loader_threads(4 * cores), std::vector<int>(static_cast<std::size_t>(4 * cores), 1));
  EXPECT_EQ(loader_threads(2, {0, 1}), std::vector<int>(2, std::max(1, cores - 1))) << "each on a host of its own";
}

}  // namespace
}  // namespace lockstep::exec
