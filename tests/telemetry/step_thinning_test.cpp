#include "observe/telemetry/step_thinning.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace lockstep::telemetry {

namespace {

constexpr std::int64_t kDenseInJobs = 32768;

std::vector<std::int64_t> kept_numbers(std::int64_t last, std::int64_t dense) {
  std::vector<std::int64_t> kept;
  for (std::int64_t number = 1; number <= last; ++number) {
    if (is_kept(number, dense)) kept.push_back(number);
  }
  return kept;
}

events::Step step_at(std::int64_t number) {
  return {.step = number};
}

events::Step skipped_step(std::int64_t number) {
  return {.step = number, .skipped = true};
}

/// What `lines` writes for an event whose line is "NAME ".
std::string taken(ThinnedLines& lines, const events::Event& event, const std::string& name) {
  return lines.next(event, name + " ");
}

std::string taken_steps(ThinnedLines& lines, std::int64_t first, std::int64_t last) {
  std::string text;
  for (std::int64_t step = first; step <= last; ++step) text += taken(lines, step_at(step), std::to_string(step));
  return text;
}

}  // namespace

TEST(StepThinning, LeavesOutMoreTheLongerARunIs) {
  EXPECT_EQ(kept_numbers(40, 4), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}));
  EXPECT_EQ(kept_numbers(20, 3), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, 12, 16}));
  EXPECT_FALSE(is_kept(std::numeric_limits<std::int64_t>::max(), 4));
}

// A month at ten steps a second has 26 million.
TEST(StepThinning, OfAMonthKeepsAFewHundredThousandSteps) {
  constexpr std::int64_t kMonth = 26'000'000;
  const auto kept = kept_numbers(kMonth, kDenseInJobs);
  EXPECT_LT(kept.size(), 200'000U);
  for (std::size_t i = 1; i < kept.size(); ++i) {
    ASSERT_LE((kept[i] - kept[i - 1]) * kDenseInJobs / 2, std::max(kept[i], kDenseInJobs)) << kept[i];
  }
}

TEST(KeptSteps, AreOfAJobThatSaysNothingTheFirstOnesAndThenFewer) {
  const KeptSteps kept;
  EXPECT_TRUE(kept.has(step_at(1)));
  EXPECT_TRUE(kept.has(step_at(kDenseInJobs - 1)));
  EXPECT_FALSE(kept.has(step_at(kDenseInJobs + 1)));
  EXPECT_TRUE(kept.has(step_at(kDenseInJobs + 2)));
  EXPECT_TRUE(kept.has(skipped_step(kDenseInJobs + 1)));
}

TEST(KeptSteps, AreThoseThatTheJobNames) {
  KeptSteps kept(Span{7, false});
  kept.start({.steps = 100, .epochs = 10});
  EXPECT_FALSE(kept.has(step_at(1)));
  EXPECT_TRUE(kept.has(step_at(14)));
  EXPECT_TRUE(kept.has(skipped_step(15)));
  KeptSteps every(Span{1, false});
  every.start({.steps = 100'000, .epochs = 10});
  EXPECT_TRUE(every.has(step_at(99'999)));
}

TEST(KeptSteps, MayBeGivenInEpochs) {
  KeptSteps kept(Span{0.5, true});
  kept.start({.steps = 25, .epochs = 2.5});
  EXPECT_FALSE(kept.has(step_at(4)));
  EXPECT_TRUE(kept.has(step_at(5)));
  KeptSteps all(Span{0.01, true});  // less than a step
  all.start({.steps = 25, .epochs = 2.5});
  EXPECT_TRUE(all.has(step_at(3)));
  KeptSteps empty(Span{1, true});
  empty.start({});
  EXPECT_TRUE(empty.has(step_at(3)));
}

TEST(ThinnedLines, KeepTheStepsBesideOtherEvents) {
  ThinnedLines lines(Span{10, false});
  EXPECT_EQ(taken(lines, events::Start{}, "start"), "start ");
  EXPECT_EQ(taken_steps(lines, 1, 12), "1 10 ");
  EXPECT_EQ(taken(lines, events::Balance{}, "move"), "12 move ");
  EXPECT_EQ(taken_steps(lines, 13, 16), "13 ");
  EXPECT_EQ(taken(lines, events::Restart{}, "restart"), "16 restart ");
  EXPECT_EQ(taken(lines, events::Launch{}, "launch"), "launch ");
  EXPECT_EQ(taken_steps(lines, 15, 20), "15 20 ");
  EXPECT_EQ(taken(lines, events::End{}, "end"), "end ") << "step 20 is written";
  EXPECT_EQ(lines.rest(), "");
}

TEST(ThinnedLines, AreNotMoreForEvaluationsAndCheckpoints) {
  ThinnedLines lines(Span{10, false});
  std::string text = taken(lines, events::Start{}, "start");
  for (std::int64_t step = 1; step <= 21; ++step) {
    text += taken_steps(lines, step, step);
    text += taken(lines, events::Evaluation{}, "eval");
    text += taken(lines, events::Checkpoint{}, "checkpoint");
  }
  std::string expected = "start ";
  for (int step = 1; step <= 21; ++step) {
    expected += (step == 1 || step % 10 == 0 ? std::to_string(step) + " " : "") + "eval checkpoint ";
  }
  EXPECT_EQ(text, expected);
  EXPECT_EQ(taken(lines, events::End{}, "end"), "21 end ");
}

TEST(ThinnedLines, EndWithTheLastStep) {
  ThinnedLines lines(Span{10, false});
  EXPECT_EQ(taken(lines, events::Start{}, "start"), "start ");
  EXPECT_EQ(taken_steps(lines, 1, 12), "1 10 ");
  EXPECT_EQ(lines.rest(), "12 ");
  EXPECT_EQ(lines.rest(), "");
}

}  // namespace lockstep::telemetry
