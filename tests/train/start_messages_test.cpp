// How many messages a rank sends before its first step: at most a constant times log2 of the number of ranks, rounded
// up, on one host or many. mpi_start_messages_check.cpp counts between processes.
#include "train/start_messages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "train/small_run.hpp"

namespace lockstep {
namespace {

/// The most that any rank sent.
std::uint64_t max_messages(int ranks, int hosts, const std::string& directory, std::int64_t stop_at) {
  std::vector<int> host_of;
  for (int r = 0; r < ranks; ++r) host_of.push_back(r % hosts);
  std::mutex mutex;
  std::uint64_t most = 0;
  run_in_threads(
      ranks,
      [&](Communicator& communicator) {
        const std::uint64_t mine = messages_before_the_first_step(communicator, directory, stop_at);
        const std::lock_guard lock(mutex);
        most = std::max(most, mine);
      },
      host_of);
  return most;
}

TEST(StartMessages, GrowWithTheLogarithmOfTheRanks) {
  for (const int ranks : {2, 3, 8, 64}) {
    for (const int hosts : {1, 3}) {
      if (hosts > ranks) continue;
      const Folder folder;
      const auto fresh = max_messages(ranks, hosts, folder.path(), 2);
      const auto resumed = max_messages(ranks, hosts, folder.path(), 0);
      EXPECT_LE(fresh, allowed_messages(kCollectivesOfAFreshStart, ranks)) << ranks << " ranks, " << hosts << " hosts";
      EXPECT_LE(resumed, allowed_messages(kCollectivesOfAResumedStart, ranks))
          << ranks << " ranks, " << hosts << " hosts";
      EXPECT_GT(resumed, fresh) << "it did not resume";
    }
  }
}

}  // namespace
}  // namespace lockstep
