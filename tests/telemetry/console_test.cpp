// A Console on readers that are slow, stopped or gone.
#include "observe/telemetry/console.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <future>
#include <string>

namespace lockstep::telemetry {
namespace {

using namespace std::chrono_literals;

class ConsoleTest : public ::testing::Test {
 protected:
  // For the rest of this program: a write that hangs may end after its test.
  static void SetUpTestSuite() { (void)std::signal(SIGPIPE, SIG_IGN); }
  ConsoleTest() { EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~ConsoleTest() override {
    close_reader();
    ::close(ends_[1]);
  }
  ConsoleTest(const ConsoleTest&) = delete;
  ConsoleTest& operator=(const ConsoleTest&) = delete;

  void close_reader() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }
  /// Writes as much as the pipe holds; returns how many bytes.
  std::size_t fill() const {
    const std::string bytes(static_cast<std::size_t>(fcntl(ends_[1], F_GETPIPE_SZ)), '.');
    EXPECT_EQ(::write(ends_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return bytes.size();
  }
  std::string read_some() {
    std::array<char, 65536> block{};
    const ssize_t count = ::read(ends_[0], block.data(), block.size());
    return {block.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }
  Console make(std::size_t most_bytes, std::chrono::milliseconds patience) {
    return {ends_[1], {.most_bytes = most_bytes, .patience = patience, .left_out = left_out_text}};
  }
  std::array<int, 2> ends_{-1, -1};
  const std::string line_ = std::string(999, 'x') + '\n';
};

TEST_F(ConsoleTest, WhatIsTakenIsWrittenInOrder) {
  Console console = make(1 << 20, 60s);
  console.print("one\n");
  console.print("two\n");
  EXPECT_EQ(console.finish(), "");
  EXPECT_EQ(read_some(), "one\ntwo\n");
}

TEST_F(ConsoleTest, AnUnreadPipeHoldsNobodyUpAndTheNextLineSaysHowManyWereLeftOut) {
  const std::size_t before = fill();
  Console console = make(10'000, 60s);
  for (int i = 0; i < 200; ++i) console.print(line_);  // ten are queued
  auto end = std::async(std::launch::async, [&] { return console.finish(); });
  const std::string notice = "190 lines left out here: not read in time\n";
  std::string text;
  while (text.size() < before + 10 * line_.size() + notice.size()) text += read_some();
  EXPECT_TRUE(text.ends_with(line_ + notice)) << text.substr(before + 9 * line_.size());
  EXPECT_EQ(end.get(), "190 lines left out, not read in time");
  console.print("later\n");
  EXPECT_EQ(read_some(), "later\n");
}

TEST_F(ConsoleTest, TheEndDoesNotWaitForAReaderThatTakesNothing) {
  (void)fill();
  Console console = make(1 << 20, 100ms);
  console.print(line_);
  EXPECT_EQ(console.finish(), "nobody reads it");
  close_reader();  // ends the write that hangs
}

TEST_F(ConsoleTest, AReaderThatHasLeftIsNoSignal) {
  Console console = make(1 << 20, 60s);
  close_reader();
  console.print(line_);
  EXPECT_EQ(console.finish(), "Broken pipe");
  console.print(line_);
}

TEST_F(ConsoleTest, ASourceThatCanWaitSeesThatItShould) {
  (void)fill();
  Console console = make(10'000, 100ms);
  EXPECT_FALSE(console.is_full());
  for (int i = 0; i < 5; ++i) console.print(line_);
  EXPECT_TRUE(console.is_full());
  close_reader();
}

}  // namespace
}  // namespace lockstep::telemetry
