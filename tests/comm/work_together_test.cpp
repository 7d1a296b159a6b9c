// Work that all ranks wait for: slow work is not a hang, work without progress is, and errors keep their code.
#include "comm/transport/work_together.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

constexpr Operation kShort{"checkpoint", 0, milliseconds(100)};

}  // namespace

TEST(WorkTogether, SlowWorkMissesNoDeadline) {
  run_in_threads(3, [](Communicator& communicator) {
    const bool slow = communicator.rank() == 1;
    const auto returned = work_together(communicator, kShort, [&](WorkProgress& /*progress*/) {
      if (slow) std::this_thread::sleep_for(milliseconds(1000));
      return slow;
    });
    EXPECT_EQ(returned, (std::vector<bool>{false, true, false}));
  });
}

TEST(WorkTogether, WorkThatGoesOnIsNotStalled) {
  run_in_threads(2, [](Communicator& communicator) {
    const auto work = [&](WorkProgress& progress) {
      for (int i = 0; i < 60 * communicator.rank(); ++i) {
        std::this_thread::sleep_for(milliseconds(50));
        progress.advance();
      }
      return true;
    };
    EXPECT_EQ(work_together(communicator, kShort, work, {.stalled = milliseconds(2000)}),
              (std::vector<bool>{true, true}));
  });
}

TEST(WorkTogether, WorkThatStandsStillIsNamed) {
  std::atomic<bool> released{false};
  try {
    run_in_threads(3, [&](Communicator& communicator) {
      const auto work = [&](WorkProgress& /*progress*/) {
        while (communicator.rank() == 1 && !released) std::this_thread::sleep_for(milliseconds(1));
        return true;
      };
      try {
        (void)work_together(communicator, kShort, work, {.stalled = milliseconds(2000)});
      } catch (const Error&) {
        released = true;
        throw;
      }
    });
    ADD_FAILURE() << "nobody noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::infrastructure);
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("rank 1 on ")) << text;
    EXPECT_TRUE(text.ends_with(
        ": 'checkpoint' has made no progress for 2 s; look at that rank, and at the disk that it reads from"))
        << text;
  }
}

// However long the first rank takes: what it reports is heard.
TEST(WorkTogether, WorkOfTheFirstRankThatGoesOnIsNotStalled) {
  run_in_threads(2, [](Communicator& communicator) {
    const auto work = [](WorkProgress& progress) {
      for (int i = 0; i < 60; ++i) {
        std::this_thread::sleep_for(milliseconds(50));
        progress.advance();
      }
    };
    work_of_first_rank(communicator, kShort, work, {.stalled = milliseconds(2000)});
  });
}

TEST(WorkTogether, AStopOfOneRankReachesTheWorkOfAll) {
  for (const int ranks : {1, 3}) {
    run_in_threads(ranks, [&](Communicator& communicator) {
      const auto work = [](WorkProgress& progress) {
        while (!progress.stopped()) std::this_thread::sleep_for(milliseconds(1));
        return false;
      };
      const auto stop = [&] { return communicator.rank() == communicator.size() - 1; };
      const auto returned = work_together(communicator, kShort, work, {.stop = stop});
      EXPECT_EQ(returned, std::vector<bool>(static_cast<std::size_t>(ranks), false));
    });
  }
}

TEST(WorkTogether, WorkThatIsGivenUpIsAnErrorOfAllRanks) {
  std::atomic<int> interrupted{0};
  run_in_threads(3, [&](Communicator& communicator) {
    const auto work = [&](WorkProgress& progress) {
      while (true) {
        progress.advance_or_stop();
        std::this_thread::sleep_for(milliseconds(1));
      }
    };
    try {
      work_of_first_rank(communicator, kShort, work, {.stop = [&] { return communicator.rank() == 2; }});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::interrupted);
      EXPECT_EQ(error.what(), std::string("'checkpoint' was stopped before it was done"));
      ++interrupted;
    }
  });
  EXPECT_EQ(interrupted, 3);
}

TEST(WorkTogether, AnErrorKeepsItsCode) {
  try {
    run_in_threads(3, [](Communicator& communicator) {
      work_of_first_rank(communicator, kShort,
                         [](WorkProgress&) { throw Error(ExitCode::configuration, "of another job"); });
    });
    ADD_FAILURE() << "expected the error of rank 0";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_EQ(error.what(), std::string("of another job"));
  }
}

}  // namespace lockstep::comm
