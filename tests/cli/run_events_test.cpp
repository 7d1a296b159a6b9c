// What a report keeps of events: little, however many steps there are.
#include "cli/run_events.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lockstep::cli {

namespace {

class LongRun : public testing::Test {
 protected:
  LongRun() : folder_(testing::TempDir() + "long_run-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    file_.open(folder_ + "/events.jsonl");
    file_ << R"({"event":"start","job":"long","ranks":2,"time":100})"
          << "\n";
  }
  ~LongRun() override { std::filesystem::remove_all(folder_); }

  void put_steps(std::int64_t first, std::int64_t last, std::int64_t every = 1) {
    for (std::int64_t step = first; step <= last; step += every) {
      file_ << R"({"event":"step","step":)" << step << (step % 1000 == 1 ? R"(,"skipped":true)" : "") << R"(,"time":)"
            << 100 + step << "}\n";
    }
  }
  [[nodiscard]] RunEvents read() {
    file_.flush();
    return read_run_events(folder_);
  }

  std::string folder_;
  std::ofstream file_;
};

std::vector<std::int64_t> numbers_of(const RunEvents& run) {
  std::vector<std::int64_t> numbers;
  for (const auto& step : run.steps) numbers.push_back(step.step);
  return numbers;
}

}  // namespace

TEST_F(LongRun, HasAllStepsOfAShortOne) {
  put_steps(1, 16384);
  const RunEvents run = read();
  EXPECT_EQ(run.steps.size(), 16384U);
  EXPECT_EQ(run.skipped.size(), 17U);
}

TEST_F(LongRun, HasEveryFewthStepAndTheLastOneAndHowManyWereSkipped) {
  put_steps(1, 99'999);
  const RunEvents run = read();
  std::vector<std::int64_t> expected;
  for (std::int64_t step = 8; step < 99'999; step += 8) expected.push_back(step);
  expected.push_back(99'999);
  EXPECT_EQ(numbers_of(run), expected);
  EXPECT_EQ(run.skipped.size(), 100U);
  EXPECT_EQ(run.rank_seconds, 2 * 99'999);
}

// A curve whose points were denser at its beginning would be drawn so, too.
TEST_F(LongRun, IsEvenWhereTheEventsHaveFewerAndFewerSteps) {
  put_steps(1, 32'768);
  put_steps(32'770, 65'536, 2);
  put_steps(65'540, 131'072, 4);
  put_steps(131'080, 140'000, 8);
  const RunEvents run = read();
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    ASSERT_EQ(run.steps[i].step, static_cast<std::int64_t>(i + 1) * 16);
  }
  EXPECT_EQ(run.steps.size(), 8750U);
}

TEST_F(LongRun, ARepeatedStepReplacesWhatWasReportedOfItAndOfLaterOnes) {
  put_steps(1, 40'000);
  file_ << R"({"event":"start","job":"long","ranks":2,"time":200000})"
        << "\n";
  put_steps(20'001, 20'003);
  const RunEvents run = read();
  EXPECT_EQ(run.steps.back().step, 20'003);
  EXPECT_EQ(run.steps[run.steps.size() - 2].step, 20'000);
  EXPECT_EQ(run.skipped.back(), 20'001);
  EXPECT_EQ(run.skipped.size(), 21U);
}

// A step that was left out is written before what came after it, with its own time.
TEST_F(LongRun, LastsUntilItsLatestEvent) {
  file_ << R"({"event":"eval","step":7,"set":"validation","loss":1,"time":150})"
        << "\n"
        << R"({"event":"step","step":7,"time":140})"
        << "\n";
  EXPECT_EQ(read().rank_seconds, 2 * 50);
}

}  // namespace lockstep::cli
