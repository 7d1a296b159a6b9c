// The communication thread's error path, and what remains of a transfer when its owner destroys it. MPI starts once in
// a process, so each test is a separate process: one rank, which sends to itself.
#include "comm/transport/mpi_thread.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/error_of.hpp"
#include "comm/transport/mpi_session.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

constexpr int kTag = 5, kNoSuchRank = 99;
constexpr int kMany = 40;
constexpr double kAtOnce = 15;  ///< seconds, on a busy machine; two for each transfer would be 80

const Operation kOperation{"a test", 3, 120'000ms};

class MpiThreadDeathTest : public testing::Test {
 protected:
  MpiThreadDeathTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 1);  // Open MPI 4 need not start a daemon for one rank
    setenv("OMPI_MCA_btl", "self", 1);
    setenv("OMPI_MCA_pml", "ob1", 1);
  }
};

/// Ends the process: 0 if nothing has failed, else 1 with the failures on stderr, which the parent process reads.
[[noreturn]] void end_process() {
  const auto* result = testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result->total_part_count(); ++i) {
    std::fprintf(stderr, "%s\n", result->GetTestPartResult(i).summary());
  }
  std::fflush(nullptr);
  _exit(result->Failed() ? 1 : 0);
}

[[noreturn]] void run(const std::function<void(Communicator&)>& body) {
  {
    const auto communicator = make_mpi_communicator();
    body(*communicator);
  }
  end_process();
}

struct Message {
  std::array<std::byte, 8> bytes{};
};

TEST_F(MpiThreadDeathTest, AnErrorIsToldAtOnceToAllWhoWait) {
  const auto body = [](Communicator& ranks) {
    std::vector<Message> messages(kMany);
    std::vector<std::unique_ptr<Transfer>> pending;
    for (auto& message : messages) pending.push_back(ranks.receive(message.bytes, 0, kTag));
    const auto start = Clock::now();
    const std::string wrong = error_of([&] { ranks.send(messages[0].bytes, kNoSuchRank, kTag)->wait(kOperation); });
    EXPECT_EQ(wrong.find("MPI_Isend failed with code"), 0U) << wrong;
    for (const auto& transfer : pending) EXPECT_EQ(error_of([&] { transfer->wait(kOperation); }), wrong);
    pending.clear();
    EXPECT_EQ(error_of([&] { ranks.receive(messages[0].bytes, 0, kTag)->wait(kOperation); }), wrong) << "posted later";
    EXPECT_EQ(error_of([&] { ranks.check_peers(); }), wrong);
    EXPECT_LT(seconds_since(start), kAtOnce);
  };
  EXPECT_EXIT(run(body), testing::ExitedWithCode(0), "");
}

TEST_F(MpiThreadDeathTest, StartsOnlyWhereMpiHasNotStarted) {
  const auto body = [](Communicator& /*ranks*/) {
    EXPECT_EQ(error_of([] { (void)make_mpi_communicator(); }, ExitCode::usage),
              "run_on_mpi: expected a program in which MPI has not started, found that it has; leave MPI_Init to "
              "run_on_mpi, or give train_job() a Communicator of your own");
  };
  EXPECT_EXIT(run(body), testing::ExitedWithCode(0), "");
}

// As when an exception unwinds and destroys everything in flight: only the first freeze() waits.
TEST_F(MpiThreadDeathTest, ACallThatHangsIsWaitedForOnce) {
  const auto body = [] {
    MpiThread mpi;
    std::promise<void> release;
    auto hanging = std::make_shared<MpiOperation>();
    std::promise<void> hangs;
    hanging->start = [&](std::vector<MPI_Request>& /*none*/) {
      hangs.set_value();
      release.get_future().wait();
    };
    mpi.post(hanging);
    hangs.get_future().wait();
    const auto start = Clock::now();
    for (int i = 0; i < kMany; ++i) mpi.freeze();
    EXPECT_LT(seconds_since(start), kAtOnce);
    release.set_value();
    mpi.close(0ms);
    end_process();
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

TEST_F(MpiThreadDeathTest, WhoWaitsInAnotherThreadHearsThatTheRankHasEnded) {
  const auto body = [](Communicator& ranks) {
    Message one, other;
    const auto waited_for = ranks.receive(one.bytes, 0, kTag);
    auto destroyed = ranks.receive(other.bytes, 0, kTag);
    std::string error;
    const auto start = Clock::now();
    std::thread waiting([&] { error = error_of([&] { waited_for->wait(kOperation); }); });
    destroyed.reset();
    waiting.join();
    EXPECT_EQ(error, "an error has ended this rank's communication");
    EXPECT_LT(seconds_since(start), kAtOnce);
  };
  EXPECT_EXIT(run(body), testing::ExitedWithCode(0), "");
}

// Sees done(), and destroys the transfer and the notified object while `notify` still runs.
void expect_that_notify_returns_first(Communicator& ranks, const std::function<void(Transfer&)>& see_it_done) {
  Message sent, received;
  auto notified = std::make_unique<std::atomic<int>>(0);
  std::atomic<bool> inside{false};
  auto transfer = ranks.receive(received.bytes, 0, kTag, [&, counter = notified.get()] {
    inside = true;
    std::this_thread::sleep_for(300ms);
    counter->store(1);  // a use after free, unless done() waits for it
  });
  std::thread sender([&] { ranks.send(sent.bytes, 0, kTag)->wait(kOperation); });
  while (!inside) std::this_thread::yield();
  see_it_done(*transfer);
  transfer.reset();
  EXPECT_EQ(notified->load(), 1);
  notified.reset();
  sender.join();
}

void see_done(Transfer& transfer) {
  EXPECT_TRUE(transfer.done()) << "who is notified looks at it";
}

void wait_for_it(Transfer& transfer) {
  transfer.wait(kOperation);
}

TEST_F(MpiThreadDeathTest, WhatIsNotifiedMayGoAwayWithTheTransfer) {
  const auto body = [](Communicator& ranks) {
    expect_that_notify_returns_first(ranks, see_done);
    expect_that_notify_returns_first(ranks, wait_for_it);
  };
  EXPECT_EXIT(run(body), testing::ExitedWithCode(0), "");
}

TEST(ThreadCommunicatorNotify, WhatIsNotifiedMayGoAwayWithTheTransfer) {
  run_in_threads(1, [](Communicator& ranks) {
    expect_that_notify_returns_first(ranks, see_done);
    expect_that_notify_returns_first(ranks, wait_for_it);
  });
}

}  // namespace
}  // namespace lockstep::comm
