#include "observe/goodput.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::observe {
namespace {

class GoodputOfARun : public testing::Test {
 protected:
  GoodputOfARun() { std::filesystem::create_directories(folder_); }
  ~GoodputOfARun() override { std::filesystem::remove_all(folder_); }
  void event(const std::string& fields, double time) {
    std::ofstream(folder_ + "/events.jsonl", std::ios::app) << "{\"event\":" << fields << ",\"time\":" << time << "}\n";
  }
  void note(const Goodput& goodput, double time) {
    const events::Goodput& s = goodput.seconds();
    event("\"goodput\",\"step\":" + std::to_string(s.step) + ",\"useful_seconds\":" + std::to_string(s.useful_seconds) +
              ",\"repeated_seconds\":" + std::to_string(s.repeated_seconds) + ",\"checkpoint_seconds\":" +
              std::to_string(s.checkpoint_seconds) + ",\"data_wait_seconds\":" + std::to_string(s.data_wait_seconds) +
              ",\"peer_wait_seconds\":" + std::to_string(s.peer_wait_seconds) +
              ",\"restart_seconds\":" + std::to_string(s.restart_seconds),
          time);
  }
  static void expect(const Goodput& goodput, const events::Goodput& expected) {
    const events::Goodput& s = goodput.seconds();
    EXPECT_NEAR(s.useful_seconds, expected.useful_seconds, 1e-5);
    EXPECT_NEAR(s.repeated_seconds, expected.repeated_seconds, 1e-5);
    EXPECT_NEAR(s.checkpoint_seconds, expected.checkpoint_seconds, 1e-5);
    EXPECT_NEAR(s.data_wait_seconds, expected.data_wait_seconds, 1e-5);
    EXPECT_NEAR(s.peer_wait_seconds, expected.peer_wait_seconds, 1e-5);
    EXPECT_NEAR(s.restart_seconds, expected.restart_seconds, 1e-5);
  }
  std::string folder_ = testing::TempDir() + "goodput-" + std::to_string(getpid());
};

TEST_F(GoodputOfARun, AddsUpToItsTime) {
  Goodput goodput(folder_, 1000);
  goodput.training_begins(1010);
  goodput.step_done(1, {.data = 1, .peers = 0.5}, 1015);
  goodput.step_done(2, {.checkpoint = 2, .data = 1.25, .peers = 0.5}, 1020);
  goodput.step_done(3, {.checkpoint = 100, .data = 1.25, .peers = 0.5}, 1021);  // no more than the time that has passed
  expect(goodput, {.useful_seconds = 3.5 + 2.75,
                   .checkpoint_seconds = 2 + 1,
                   .data_wait_seconds = 1.25,
                   .peer_wait_seconds = 0.5,
                   .restart_seconds = 10});
  EXPECT_FALSE(goodput.is_due(1021));
  EXPECT_TRUE(goodput.is_due(1040));
}

TEST_F(GoodputOfARun, GoesOnAfterADeath) {
  Goodput first(folder_, 1000);
  first.training_begins(1010);
  event("\"start\"", 1010);
  first.step_done(1, {}, 1015);
  event("\"step\",\"step\":1", 1015);
  note(first, 1015);
  event("\"step\",\"step\":2", 1020);
  event("\"step\",\"step\":3", 1025);
  event("\"restart\"", 1060);  // what ended at 1025 was noticed then

  Goodput second(folder_, 1070);
  second.training_begins(1075);
  second.step_done(2, {}, 1081);
  second.step_done(3, {}, 1086);
  second.step_done(4, {}, 1090);
  expect(second, {.useful_seconds = 5 + 10 + 4, .repeated_seconds = 11, .restart_seconds = 10 + 50});
}

TEST_F(GoodputOfARun, APauseAfterAnEndDoesNotCount) {
  Goodput first(folder_, 1000);
  first.training_begins(1001);
  event("\"start\"", 1001);
  first.step_done(1, {}, 1005);
  event("\"step\",\"step\":1", 1005);
  note(first, 1005);
  event("\"end\",\"outcome\":\"interrupted\"", 1006);
  Goodput second(folder_, 90000);
  second.training_begins(90003);
  second.step_done(2, {}, 90010);
  expect(second, {.useful_seconds = 4 + 7, .restart_seconds = 1 + 3});
}

TEST_F(GoodputOfARun, ARunWithoutADirectoryBeginsAnew) {
  event("\"step\",\"step\":7", 10);
  Goodput goodput("", 100);
  goodput.training_begins(101);
  goodput.step_done(1, {}, 103);
  expect(goodput, {.useful_seconds = 2, .restart_seconds = 1});
}

}  // namespace
}  // namespace lockstep::observe
