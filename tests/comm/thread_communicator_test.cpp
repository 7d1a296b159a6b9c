#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <numeric>

#include "comm/error_of.hpp"
#include "comm/transport/point_to_point.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/error.hpp"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

constexpr Operation kTest{"test", 3, 20'000ms};

// Values that identify the rank that wrote them.
std::vector<float> values_of(int rank, std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<float>(rank * 1000) + static_cast<float>(i % 512);
  return values;
}

// No rank may gather the numbers of all: it sends, and has in memory, those of one rank for each round of the tree.
TEST(IntegerSum, IsThatOfAllRanksAndSendsLittle) {
  constexpr std::size_t kNumbers = 1000;
  for (const int ranks : {1, 2, 3, 5, 8, 32}) {
    const int rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
    run_in_threads(ranks, [&](Communicator& c) {
      std::vector<std::int64_t> numbers(kNumbers);
      for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] = (std::int64_t{1} << 52) + c.rank() * static_cast<int>(i);
      const auto before = c.traffic().network_bytes;
      comm::all_reduce_sum(c, numbers, kTest);
      for (std::size_t i = 0; i < kNumbers; ++i) {
        ASSERT_EQ(numbers[i], ranks * (std::int64_t{1} << 52) + ranks * (ranks - 1) / 2 * static_cast<int>(i));
      }
      EXPECT_LE(c.traffic().network_bytes - before, static_cast<std::uint64_t>(rounds + 1) * kNumbers * 8);
    });
  }
}

class Collectives : public testing::TestWithParam<std::tuple<int, std::size_t>> {};

TEST_P(Collectives, AllGather) {
  const auto [ranks, size] = GetParam();
  run_in_threads(ranks, [size = size](Communicator& c) {
    const auto mine = values_of(c.rank(), size);
    std::vector<float> all(size * static_cast<std::size_t>(c.size()), -1);
    c.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), kTest);
    std::vector<float> expected;
    for (int r = 0; r < c.size(); ++r) {
      const auto values = values_of(r, size);
      expected.insert(expected.end(), values.begin(), values.end());
    }
    EXPECT_EQ(all, expected);
  });
}

TEST_P(Collectives, BroadcastFromEveryRoot) {
  const auto [ranks, size] = GetParam();
  run_in_threads(ranks, [size = size](Communicator& c) {
    for (int root = 0; root < c.size(); ++root) {
      auto values = values_of(c.rank(), size);
      c.broadcast(std::as_writable_bytes(std::span(values)), root, kTest);
      EXPECT_EQ(values, values_of(root, size));
    }
  });
}

TEST_P(Collectives, AllReduceSum) {
  const auto [ranks, size] = GetParam();
  run_in_threads(ranks, [size = size](Communicator& c) {
    auto values = values_of(c.rank(), size);
    c.all_reduce_sum(values, kTest);
    for (std::size_t i = 0; i < size; ++i) {  // small whole numbers: exact in any order
      const int n = c.size();
      ASSERT_EQ(values[i], static_cast<float>(n * static_cast<int>(i % 512) + 1000 * n * (n - 1) / 2));
    }
  });
}

TEST_P(Collectives, SendAndReceiveKeepTheirOrder) {
  const auto [ranks, size] = GetParam();
  run_in_threads(ranks, [size = size](Communicator& c) {
    const int next = (c.rank() + 1) % c.size(), previous = (c.rank() + c.size() - 1) % c.size();
    std::vector<std::vector<float>> received(5, std::vector<float>(size));
    std::vector<std::unique_ptr<Transfer>> transfers;
    const auto post = [&](std::size_t i) {
      transfers.push_back(c.receive(std::as_writable_bytes(std::span(received[i])), previous, 7));
    };
    for (std::size_t i = 0; i < 3; ++i) post(i);  // possibly before they are sent
    for (int i = 0; i < 5; ++i) {
      const auto values = values_of(10 * i + c.rank(), size);
      c.send(std::as_bytes(std::span(values)), next, 7)->wait(kTest);
    }
    for (std::size_t i = 3; i < 5; ++i) post(i);
    for (const auto& transfer : transfers) transfer->wait(kTest);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(received[i], values_of(10 * static_cast<int>(i) + previous, size));
  });
}

INSTANTIATE_TEST_SUITE_P(Sweep, Collectives,
                         testing::Combine(testing::Range(1, 10), testing::Values(0, 1, 7, 64, 1000, 10'007)));

TEST(ThreadCommunicator, BarrierHoldsEveryRankBack) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    std::atomic<int> arrived{0};
    run_in_threads(ranks, [&](Communicator& c) {
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        c.barrier(kTest);
        EXPECT_GE(arrived, round * c.size());
        c.barrier(kTest);
      }
    });
  }
}

int rounds(int ranks) {
  int count = 0;
  while ((1 << count) < ranks) ++count;
  return count;
}

// The collectives at the start of a run must not cost a message per other rank.
TEST(ThreadCommunicator, CollectivesSendAtMostOneMessageARound) {
  for (const int ranks : {1, 2, 3, 5, 8, 33, 64, 100}) {
    run_in_threads(ranks, [&](Communicator& c) {
      const auto sent = [&](const std::function<void()>& collective) {
        const auto before = c.traffic().messages;
        collective();
        return static_cast<int>(c.traffic().messages - before);
      };
      const std::array<int, 2> mine = {c.rank(), -c.rank()};
      std::vector<int> all(2 * static_cast<std::size_t>(ranks));
      EXPECT_EQ(sent([&] { c.barrier(kTest); }), rounds(ranks));
      EXPECT_LE(sent([&] { c.broadcast(std::as_writable_bytes(std::span(all)), ranks / 2, kTest); }), rounds(ranks));
      EXPECT_EQ(
          sent([&] { c.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), kTest); }),
          rounds(ranks));
      for (int r = 0; r < ranks; ++r) {
        EXPECT_EQ(all[2 * static_cast<std::size_t>(r)], r);
        EXPECT_EQ(all[2 * static_cast<std::size_t>(r) + 1], -r);
      }
    });
  }
}

TEST(ThreadCommunicator, DeadlineNamesRankHostPeerOperationAndStep) {
  std::string message;
  run_in_threads(3,
                 [&](Communicator& c) {
                   if (c.rank() != 1) return;
                   float value = 0;
                   message = comm::error_of(
                       [&] {
                         c.receive(std::as_writable_bytes(std::span(&value, 1)), 2, 0)->wait({"reduce", 17, 100ms});
                       },
                       ExitCode::infrastructure);
                 },
                 {0, 0, 1});
  EXPECT_EQ(message,
            "rank 1 on host a: waited 0.1 s for rank 2 (host b) in 'reduce' of step 17; look at that rank's log: it "
            "ended, hangs or is much slower than this one (then raise job.timeout)");
}

TEST(ThreadCommunicator, AFailedRankWakesTheOthersAndItsErrorIsTheJobs) {
  std::vector<std::string> messages(3);
  const auto start = std::chrono::steady_clock::now();
  const std::string message = comm::error_of(
      [&] {
        run_in_threads(3, [&](Communicator& c) {
          if (c.rank() == 2) throw Error(ExitCode::diverged, "the loss is not finite");
          messages[static_cast<std::size_t>(c.rank())] = comm::error_of(
              [&] {
                c.barrier({"barrier", 1, 20'000ms});
              },
              ExitCode::infrastructure);
        });
      },
      ExitCode::diverged);
  EXPECT_EQ(message, "the loss is not finite");
  EXPECT_EQ(messages[0], "rank 0 (host a): rank 2 (host a) ended with an error");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST(SingleCommunicator, CollectivesAreCopies) {
  const auto c = make_single_communicator();
  auto values = values_of(3, 5);
  std::vector<float> all(5);
  c->barrier(kTest);
  c->broadcast(std::as_writable_bytes(std::span(values)), 0, kTest);
  c->all_reduce_sum(values, kTest);
  c->all_gather(std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(all)), kTest);
  EXPECT_EQ(all, values_of(3, 5));
}

TEST(Topology, NumbersHostsByTheirLowestRank) {
  run_in_threads(5,
                 [](Communicator& c) {
                   EXPECT_EQ(c.topology().host_of, (std::vector{0, 1, 0, 2, 1}));
                   EXPECT_EQ(c.topology().host_names, (std::vector<std::string>{"d", "a", "b"}));
                   EXPECT_EQ(c.topology().local_rank(4), 1);
                   EXPECT_EQ(c.topology().local_size(2), 2);
                 },
                 {3, 0, 3, 1, 0});
}

}  // namespace
}  // namespace lockstep
