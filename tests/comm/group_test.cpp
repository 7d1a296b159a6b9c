// A group of a communicator's ranks as a communicator.
#include "comm/transport/group.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "comm/error_of.hpp"
#include "comm/transport/host_memory.hpp"

namespace lockstep::comm {

namespace {

std::vector<int> gathered(Communicator& communicator, int mine) {
  std::vector<int> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), {"gather", 0});
  return all;
}

}  // namespace

TEST(GroupCommunicator, NumbersItsRanksFromZero) {
  run_in_threads(
      5,
      [](Communicator& all) {
        const std::vector<int> ranks = all.rank() % 2 == 0 ? std::vector<int>{0, 2, 4} : std::vector<int>{1, 3};
        GroupCommunicator group(all, ranks);
        EXPECT_EQ(group.size(), static_cast<int>(ranks.size()));
        EXPECT_EQ(group.rank(), all.rank() / 2);
        EXPECT_EQ(gathered(group, all.rank()), ranks);
        // First over all ranks, then over the group: messages of the two are not confused.
        EXPECT_EQ(gathered(all, all.rank()), (std::vector<int>{0, 1, 2, 3, 4}));
        std::vector<float> sum{static_cast<float>(all.rank())};
        group.all_reduce_sum(sum, {"sum", 0});
        EXPECT_EQ(sum.front(), std::accumulate(ranks.begin(), ranks.end(), 0.0F));
        EXPECT_EQ(group.topology().same_host(0, group.size() - 1), all.rank() % 2 == 1);
      },
      {0, 0, 0, 0, 1});
}

TEST(GroupCommunicator, SharesMemoryWithTheRanksOfItsHost) {
  run_in_threads(4, [](Communicator& all) {
    GroupCommunicator group(all, all.rank() < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3});
    const auto memory = map_host_memory(
        group,
        {.bytes = 64, .prepare = [&](std::byte* block) { *block = std::byte(static_cast<unsigned char>(all.rank())); }},
        {"memory", 0});
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(std::to_integer<int>(*memory->block(r)), all.rank() / 2 * 2 + r);
    }
    group.barrier({"end", 0});
  });
}

TEST(GroupCommunicator, CallsRanksByTheNumbersThatTheyHaveInTheJob) {
  const std::string error = error_of([] {
    run_in_threads(4, [](Communicator& all) {
      if (all.rank() < 2) return;
      GroupCommunicator group(all, {2, 3});
      EXPECT_EQ(group.topology().number(group.rank()), all.rank());
      EXPECT_EQ(group.topology().number(-1), -1);
      if (group.rank() == 1) return;
      std::byte byte{};
      group.receive({&byte, 1}, 1, 5, {})->wait({"a step", 7, std::chrono::milliseconds(30)});
    });
  });
  EXPECT_NE(error.find("rank 2 on host a: waited"), std::string::npos) << error;
  EXPECT_NE(error.find("for rank 3 (host a) in 'a step' of step 7"), std::string::npos) << error;
}

}  // namespace lockstep::comm
