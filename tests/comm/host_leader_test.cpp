#include "comm/transport/host_leader.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

TEST(HostLeader, OneRankOfEachHostMakes) {
  std::mutex mutex;
  std::vector<int> makers;
  std::vector<std::string> results(5);
  run_in_threads(5,
                 [&](Communicator& communicator) {
                   const int rank = communicator.rank();
                   results[static_cast<std::size_t>(rank)] = make_once_a_host(communicator, [&] {
                     const std::lock_guard lock(mutex);
                     makers.push_back(rank);
                     return std::string(rank == 0 ? "" : "by rank " + std::to_string(rank));
                   });
                 },
                 {0, 1, 0, 1, 1});
  std::sort(makers.begin(), makers.end());
  EXPECT_EQ(makers, (std::vector<int>{0, 1}));
  EXPECT_EQ(results, (std::vector<std::string>{"", "by rank 1", "", "by rank 1", "by rank 1"}));
}

TEST(HostLeader, ItsErrorIsEverybodys) {
  std::atomic<int> told{0};
  run_in_threads(3, [&](Communicator& communicator) {
    try {
      (void)make_once_a_host(communicator, []() -> std::string { throw Error(ExitCode::data, "a.png: truncated"); });
    } catch (const Error& error) {
      if (error.code() == ExitCode::data && std::string(error.what()) == "a.png: truncated") ++told;
    }
  });
  EXPECT_EQ(told, 3);
}

}  // namespace
}  // namespace lockstep::comm
