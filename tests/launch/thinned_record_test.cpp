// Of steps, events.jsonl of a launch has those that the job names; who reads along sees all.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "launch/run_record.hpp"
#include "observe/telemetry/event_json.hpp"

namespace lockstep::launch {

TEST(ThinnedRecord, HasTheStepsThatTheJobNamesAndThoseBesideOtherEvents) {
  const std::string directory = testing::TempDir() + "thinned_record-" + std::to_string(getpid());
  testing::internal::CaptureStdout();
  {
    RunRecord record(directory, "", "launch", /*json=*/true, 0, Span{5, false});
    record.event(events::Launch{.attempt = 1});
    record.event(events::Start{});
    for (int step = 1; step <= 13; ++step) record.event(events::Step{.step = step});
    record.event(events::Restart{.step = 13});
    for (int step = 12; step <= 17; ++step) record.event(events::Step{.step = step});
    record.line(R"({"event":"of a later version"})");
    record.finish_printing();
  }
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 23);
  std::vector<std::string> found;
  std::ifstream file(directory + "/events.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto read = telemetry::read_event(line);
    const auto* step = read.event ? std::get_if<events::Step>(&*read.event) : nullptr;
    found.push_back(step == nullptr ? read.name : std::to_string(step->step));
  }
  EXPECT_EQ(found,
            (std::vector<std::string>{"launch", "start", "1", "5", "10", "13", "restart", "12", "15", "", "17"}));
  std::filesystem::remove_all(directory);
}

}  // namespace lockstep::launch
