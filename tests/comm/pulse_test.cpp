// Ranks that wait for each other: as long as one of them makes progress, no wait expires; when nothing moves, all know
// who stands still. Time is made up, and everything happens in one thread.
#include "comm/transport/pulse.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "comm/error_of.hpp"
#include "comm/transport/thread_communicator.hpp"
#include "comm/transport/topology.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPulseTimeout{60};

/// A pipeline of ranks, each on a host of its own, which exchange messages with their neighbours.
struct Row {
  explicit Row(int size) {
    Topology topology;
    for (int r = 0; r < size; ++r) {
      topology.host_of.push_back(r);
      topology.host_names.push_back(std::string(1, static_cast<char>('a' + r)));
    }
    world = std::make_unique<ThreadWorld>(topology);
    for (int r = 0; r < size; ++r) {
      ranks.push_back(std::make_unique<ThreadCommunicator>(*world, r));
      std::vector<int> peers;
      if (r > 0) peers.push_back(r - 1);
      if (r + 1 < size) peers.push_back(r + 1);
      pulses.push_back(std::make_unique<Pulse>(*ranks.back(), peers, kPulseTimeout, [this] { return now; }));
    }
  }
  Pulse& operator[](int rank) { return *pulses[static_cast<std::size_t>(rank)]; }
  /// All ranks but the first `computing` ones wait for the one before them, and look every 100 ms.
  void wait(seconds duration, int computing) {
    for (const auto end = now + duration; now < end; now += milliseconds(100)) {
      for (int r = computing; r < static_cast<int>(pulses.size()); ++r)
        progress.at(r) = (*this)[r].last_progress(r - 1);
    }
  }
  [[nodiscard]] double silent(int rank) const {
    return std::chrono::duration<double>(now - progress.at(static_cast<std::size_t>(rank))).count();
  }

  Clock::time_point now = Clock::now();
  std::unique_ptr<ThreadWorld> world;
  std::vector<std::unique_ptr<ThreadCommunicator>> ranks;
  std::vector<std::unique_ptr<Pulse>> pulses;
  std::vector<Clock::time_point> progress = std::vector<Clock::time_point>(16, now);
};

}  // namespace

// Ten parts of ten seconds: the last one waits for 90 s.
TEST(Pulse, AHealthyPipelineNeverExpires) {
  Row row(10);
  for (int part = 0; part < 9; ++part) {
    row.wait(seconds(10), part + 1);  // ranks behind this one wait while it computes
    row[part].moved();
    row[part + 1].moved();  // it has got what it waited for
  }
  EXPECT_LT(row.silent(9), 20);
}

TEST(Pulse, AtTheEndOfTheChainIsWhoStandsStill) {
  Row row(5);
  row[0].moved();
  row.wait(kPulseTimeout, 1);
  for (int r = 1; r < 5; ++r) {
    EXPECT_GE(row.silent(r), 59.8) << r;
    EXPECT_LE(row.silent(r), 60.2) << "news of a standstill is not progress, rank " << r;
    EXPECT_EQ(row[r].blamed(r - 1), 0) << r;
  }
}

TEST(Pulse, ARankThatMovesAgainIsNoLongerSaidToWait) {
  Row row(3);
  row.wait(seconds(30), 1);
  EXPECT_EQ(row[2].blamed(1), 0);
  row[1].moved();  // and hangs
  row.progress.at(2) = row[2].last_progress(1);
  EXPECT_EQ(row[2].blamed(1), 1);
  EXPECT_EQ(row.silent(2), 0);
}

TEST(Pulse, RanksThatWaitInACircleExpire) {
  Row row(2);
  for (const auto end = row.now + seconds(70); row.now < end; row.now += milliseconds(100)) {
    row.progress.at(0) = row[0].last_progress(1);
    row.progress.at(1) = row[1].last_progress(0);
  }
  EXPECT_GE(row.silent(0), 69);
  EXPECT_GE(row.silent(1), 69);
}

TEST(Pulse, ShortWaitsSendNothing) {
  Row row(3);
  for (int step = 0; step < 100; ++step) {
    row.now += milliseconds(100);
    for (int r = 0; r < 3; ++r) row[r].moved();
  }
  EXPECT_EQ(row.ranks[1]->traffic().messages, 0U);
}

// What a wait does with the answers: it has the timeout from the last progress on, and blames whom it is told.
TEST(Pulse, AWaitEndsWithTheRankAtTheEndOfTheChain) {
  struct Known final : WaitWatch {
    Clock::time_point last_progress(int peer) override {
      EXPECT_EQ(peer, 1);
      return ++asked < 5 ? Clock::now() : Clock::now() - std::chrono::hours(1);
    }
    int blamed(int /*peer*/) override { return 0; }
    int asked = 0;
  };
  Known known;
  const auto text = error_of([&] {
    run_in_threads(3,
                   [&](Communicator& ranks) {
                     if (ranks.rank() != 2) return;
                     std::byte byte{};
                     const Operation operation{"activations", 7, milliseconds(1), nullptr, &known};
                     ranks.receive(std::span(&byte, 1), 1, 3)->wait(operation);
                   },
                   {0, 1, 2});
  });
  EXPECT_GE(known.asked, 5);
  EXPECT_TRUE(text.starts_with("rank 2 on host c: waited ")) << text;
  EXPECT_NE(text.find(" s for rank 0 (host a) in 'activations' of step 7: rank 1 (host b) waits for it, too; look at "
                      "that rank's log: it ended, hangs or is much slower than this one (then raise job.timeout)"),
            std::string::npos)
      << text;
}

TEST(Pulse, ClosingLeavesNothingBehind) {
  run_in_threads(2, [](Communicator& ranks) {
    for (int i = 0; i < 3; ++i) {
      auto now = Clock::now();
      const auto much_later = [&now] { return now += kPulseTimeout; };  // so it tells of everything
      Pulse pulse(ranks, {1 - ranks.rank()}, kPulseTimeout, much_later);
      for (int j = 0; j < i * (1 + ranks.rank()); ++j) pulse.moved();
      pulse.close();
    }
  });
}

}  // namespace lockstep::comm
