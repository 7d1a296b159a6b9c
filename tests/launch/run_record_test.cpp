// The events of a launch, on disks that are full or hang.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "core/files.hpp"
#include "launch/run_record.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {
namespace {

using namespace std::chrono_literals;

TEST(RunRecord, ASecondLaunchWaitsForTheFirstOne) {
  const std::string directory = testing::TempDir() + "run_record_lock-" + std::to_string(getpid());
  auto first = std::make_unique<RunRecord>(directory, "", "first", false);
  EXPECT_THROW(RunRecord(directory, "", "second", false), Error);
  std::thread end([&] {
    std::this_thread::sleep_for(50ms);
    first.reset();
  });
  EXPECT_NO_THROW(RunRecord(directory, "", "second", false, 60));
  end.join();
  std::filesystem::remove_all(directory);
}

// A file server that takes the first one's host for lost gives its lock away; here the file is another one.
TEST(RunRecord, ALaunchThatHasLostTheDirectoryBeginsNoAttempt) {
  const std::string directory = testing::TempDir() + "run_record_lost-" + std::to_string(getpid());
  RunRecord first(directory, "", "first", false);
  (void)first.next_attempt();
  std::filesystem::remove(directory + "/launch.lock");
  RunRecord second(directory, "", "second", false);
  try {
    first.require_own();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::infrastructure);
    EXPECT_EQ(error.what(), directory +
                                ": another launch has taken this directory (second): this one was cut off from it or "
                                "taken for lost, and writes nothing there any more; the other one continues the run");
  }
  EXPECT_TRUE(second.next_attempt().ends_with("/logs/attempt-2"));
  std::filesystem::remove_all(directory);
}

// The launch makes files again each second, perhaps while they are removed.
void remove_all_of(const std::string& directory) {
  std::error_code error;
  do std::filesystem::remove_all(directory, error);
  while (error == std::errc::directory_not_empty);
  EXPECT_FALSE(error) << error.message();
}

// By a cleaner of old files, or a user's hand.
TEST(RunRecord, WhatIsRemovedIsMadeAgainWhileTheLaunchLives) {
  const std::string directory = testing::TempDir() + "run_record_removed-" + std::to_string(getpid());
  RunRecord record(directory, "job", "launch", true);
  std::filesystem::remove(directory + "/launch.lock");
  record.require_own();
  EXPECT_TRUE(record.next_attempt().ends_with("/logs/attempt-1"));
  EXPECT_EQ(read_whole_file(directory + "/launch.lock"), "launch");
  remove_all_of(directory);
  record.require_own();
  EXPECT_TRUE(record.next_attempt().ends_with("/logs/attempt-2"));
  EXPECT_EQ(read_whole_file(directory + "/launch.lock"), "launch");
  testing::internal::CaptureStdout();
  record.line(R"({"event":"later"})");
  record.flush();
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(read_whole_file(directory + "/job.yaml"), "job");
  EXPECT_TRUE(read_whole_file(directory + "/events.jsonl").value_or("").starts_with(R"({"event":"later","time":)"));
  EXPECT_THROW(RunRecord(directory, "", "second", false), Error);
  remove_all_of(directory);
}

TEST(RunRecord, ALineThatWasNotWrittenToItsEndIsEnded) {
  const std::string directory = testing::TempDir() + "run_record_torn-" + std::to_string(getpid());
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/events.jsonl") << "{\"event\":\"st";
  RunRecord record(directory, "", "launch", false);
  record.line(R"({"event":"next"})");
  record.flush();
  EXPECT_TRUE(
      read_whole_file(directory + "/events.jsonl").value_or("").starts_with("{\"event\":\"st\n{\"event\":\"next\","));
  std::filesystem::remove_all(directory);
}

// A file system that hangs: here a pipe that nobody reads. Lines are accepted meanwhile, and none is lost.
TEST(RunRecord, AFileThatTakesNothingForAWhileHoldsNobodyUp) {
  const std::string directory = testing::TempDir() + "run_record_pipe-" + std::to_string(getpid());
  std::filesystem::create_directories(directory);
  const std::string file = directory + "/events.jsonl";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  const int reader = open(file.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  constexpr int kLines = 5000;  // more than a pipe holds
  std::string text;
  {
    RunRecord record(directory, "", "launch", true);
    testing::internal::CaptureStdout();
    auto written = std::async(std::launch::async, [&] {
      for (int i = 0; i < kLines; ++i) record.line(R"({"event":"step","step":)" + std::to_string(i) + "}");
    });
    const bool taken = written.wait_for(60s) == std::future_status::ready;
    EXPECT_TRUE(taken) << "the supervisor would hear no heartbeat";
    std::thread end([&] {
      std::array<char, 65536> block{};
      while (std::count(text.begin(), text.end(), '\n') < kLines) {
        const ssize_t count = read(reader, block.data(), block.size());
        if (count > 0) text.append(block.data(), static_cast<std::size_t>(count));
        if (count <= 0) std::this_thread::sleep_for(1ms);
      }
    });
    written.wait();
    end.join();
    record.flush();
    testing::internal::GetCapturedStdout();
  }
  close(reader);
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i < kLines; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line.find(R"({"event":"step","step":)" + std::to_string(i) + ","), 0U) << line;
  }
  std::filesystem::remove_all(directory);
}

// A limit of the process imitates a full disk: a write across it is cut short, too.
TEST(RunRecord, AFullDiskLeavesAGapAndNoHalfALine) {
  const std::string directory = testing::TempDir() + "run_record-" + std::to_string(getpid());
  const std::string file = directory + "/events.jsonl";
  RunRecord record(directory, "", "launch", false);
  record.line(R"({"event":"first"})");
  record.flush();
  const auto size = std::filesystem::file_size(file);
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{size + 10, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  record.line(R"({"event":"second"})");
  record.flush();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_EQ(std::filesystem::file_size(file), size);
  record.line(R"({"event":"third"})");
  record.flush();
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str().find(R"({"event":"first","time":)"), 0U);
  EXPECT_NE(text.str().find("}\n{\"event\":\"third\""), std::string::npos) << text.str();
  EXPECT_EQ(text.str().find("second"), std::string::npos);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace lockstep::launch
