// One verdict for all ranks, and soon: a failure ends the wait of ranks that do not know of it yet.
#include "comm/transport/agreement.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <regex>

#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

using Says = std::function<std::optional<std::string>(int rank)>;

/// By rank: "well", "rank 2: broken", or the error with which it ended.
std::vector<std::string> ends(int size, const Says& says, std::chrono::milliseconds timeout = 60s,
                              std::chrono::milliseconds patience = 10s, int silent = -1) {
  std::vector<std::string> found(static_cast<std::size_t>(size));
  const std::regex waited("waited [0-9.]+ s");
  run_in_threads(size, [&](Communicator& ranks) {
    if (ranks.rank() == silent) return;
    std::string& end = found[static_cast<std::size_t>(ranks.rank())];
    try {
      const auto failure = agree(
          ranks, [&] { return says(ranks.rank()); }, {"the start of a test", 0, timeout}, patience);
      end = failure ? fmt::format("rank {}: {}", failure->rank, failure->what) : "well";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::infrastructure);
      end = std::regex_replace(error.what(), waited, "waited some s");
    }
  });
  return found;
}

TEST(Agreement, AllIsWellWhereAllSaySo) {
  for (const int size : {1, 2, 3, 4, 7, 12}) {
    std::atomic<int> open = 40 * size;  // they need some time
    const auto says = [&](int) -> std::optional<std::string> {
      if (--open > 0) return std::nullopt;
      return "";
    };
    EXPECT_EQ(ends(size, says), std::vector<std::string>(static_cast<std::size_t>(size), "well"));
  }
}

TEST(Agreement, AFailureAnywhereEndsThoseWhoDoNotKnowYet) {
  constexpr int kSize = 12;
  for (int broken = 0; broken < kSize; ++broken) {
    const auto start = Clock::now();
    const auto says = [&](int rank) -> std::optional<std::string> {
      if (rank == broken) return "broken";
      if (rank % 3 == 0) return "";
      return std::nullopt;
    };
    EXPECT_EQ(ends(kSize, says), std::vector<std::string>(kSize, fmt::format("rank {}: broken", broken)));
    EXPECT_LT(seconds_since(start), 30);
  }
}

TEST(Agreement, OfSeveralFailuresAllRanksNameOne) {
  const auto found = ends(7, [](int rank) { return fmt::format("no {}", rank); });
  EXPECT_EQ(found, std::vector<std::string>(7, found[0]));
}

TEST(Agreement, ALongStoryIsCut) {
  const auto found = ends(2, [](int) { return std::string(5000, 'x'); });
  EXPECT_EQ(found, std::vector<std::string>(2, "rank 0: " + std::string(kMaxFailureText, 'x')));
}

TEST(Agreement, ARankThatEndsBeforeItSaysAnythingEndsTheWait) {
  const auto start = Clock::now();
  std::string end;
  EXPECT_THROW(run_in_threads(2,
                              [&](Communicator& ranks) {
                                if (ranks.rank() == 1) throw Error(ExitCode::internal, "gone");
                                try {
                                  (void)agree(
                                      ranks, [] { return ""; }, {"the start of a test", 0, 600s}, 10s);
                                } catch (const Error& error) {
                                  end = error.what();
                                }
                              }),
               Error);
  EXPECT_EQ(end, "rank 0 (host a): rank 1 (host a) ended with an error");
  EXPECT_LT(seconds_since(start), 30);
}

TEST(Agreement, WhoWaitsForASilentRankNamesIt) {
  const auto found = ends(
      3, [](int) { return ""; }, 1s, 1s, 2);
  EXPECT_EQ(
      found[0],
      "rank 0 on host a: waited some s for rank 2 (host a) in 'the start of a test' of step 0; look at that rank's "
      "log: it ended, hangs or is much slower than this one (then raise job.timeout)");
  EXPECT_TRUE(found[1].find("waited some s for rank 0 (host a)") != std::string::npos) << found[1];
}

}  // namespace
}  // namespace lockstep::comm
