// Tags of messages between parts: however many micro-batches there are, few tags are enough, and no message can be
// taken for another one.
#include "step/exec/part_links.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "seeds.hpp"

namespace lockstep::exec {

namespace {

constexpr int kRanks = 3, kWorkers = 2;  // of a part; of a rank

/// As if two parts had computed so many micro-batches, each worker its own, in any order.
std::vector<PartMessage> messages_in_any_order(int micro_batches, std::mt19937& random) {
  std::vector<std::size_t> sent(static_cast<std::size_t>(micro_batches));
  std::iota(sent.begin(), sent.end(), std::size_t{0});
  auto received = sent;
  std::shuffle(sent.begin(), sent.end(), random);
  std::shuffle(received.begin(), received.end(), random);
  std::vector<PartMessage> messages;
  for (std::size_t m = 0; m < sent.size(); ++m) {
    const int sender = static_cast<int>(random() % (kRanks * kWorkers));
    const int receiver = static_cast<int>(random() % (kRanks * kWorkers)) + kRanks * kWorkers;
    messages.push_back({sender / kWorkers, receiver / kWorkers, sender, receiver, sent[m], received[m]});
  }
  return messages;
}

}  // namespace

TEST(PartLinks, MessagesWithOneNumberCannotOvertakeEachOther) {
  for (const unsigned seed : seeds(20)) {
    std::mt19937 random(seed);
    const auto messages = messages_in_any_order(200, random);
    const auto numbers = message_numbers(messages);
    std::map<std::tuple<int, int, int>, std::vector<PartMessage>> alike;  // by rank, rank and number
    for (std::size_t m = 0; m < messages.size(); ++m) {
      alike[{messages[m].from, messages[m].to, numbers[m]}].push_back(messages[m]);
    }
    for (auto& [key, list] : alike) {
      std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.sent < b.sent; });
      for (std::size_t i = 1; i < list.size(); ++i) {
        EXPECT_EQ(list[i].sender, list[0].sender) << rerun(seed, "exec_test");
        EXPECT_EQ(list[i].receiver, list[0].receiver) << rerun(seed, "exec_test");
        EXPECT_LT(list[i - 1].received, list[i].received) << rerun(seed, "exec_test");
      }
    }
  }
}

// 64 parts with a million micro-batches had more values between them than there were tags.
TEST(PartLinks, AMillionMicroBatchesInOrderNeedOneNumber) {
  std::vector<PartMessage> messages;
  for (std::size_t m = 0; m < 1'000'000; ++m) messages.push_back({0, 1, 0, 1, 2 * m, 2 * m + 1});
  const auto numbers = message_numbers(messages);
  EXPECT_EQ(*std::max_element(numbers.begin(), numbers.end()), 0);
}

TEST(PartLinks, EachPairOfWorkersHasNumbersOfItsOwn) {
  // Rank 0's two workers send to rank 1's two; the second pair's second message overtakes the first.
  const std::vector<PartMessage> messages = {
      {0, 1, 0, 2, 0, 4}, {0, 1, 1, 3, 1, 7}, {0, 1, 0, 2, 2, 5}, {0, 1, 1, 3, 3, 6}, {0, 2, 0, 4, 8, 9}};
  EXPECT_EQ(message_numbers(messages), (std::vector<int>{0, 1, 0, 2, 0}));
}

}  // namespace lockstep::exec
