#include "core/flight_recorder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace lockstep {
namespace {

TEST(FlightRecorder, KeepsTheNewestEntriesOldestFirst) {
  FlightRecorder recorder(4);
  recorder.set_step(7);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(recorder.enqueue("send", static_cast<int>(i), 10 * i), i);
  const auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(entries[i].number, i + 2);
    EXPECT_EQ(entries[i].peer, static_cast<int>(i) + 2);
    EXPECT_EQ(entries[i].bytes, 10 * (i + 2));
    EXPECT_EQ(entries[i].step, 7U);
    EXPECT_EQ(entries[i].done, -1);
  }
}

TEST(FlightRecorder, AnOverwrittenEntryIsNotFinishedInAnothersPlace) {
  FlightRecorder recorder(2);
  const auto first = recorder.enqueue("send", 1, 1);
  (void)recorder.enqueue("send", 2, 2);
  const auto third = recorder.enqueue("receive", 3, 3);
  recorder.start(first);
  recorder.finish(first);
  EXPECT_EQ(recorder.entries()[1].done, -1);
  recorder.start(third);
  recorder.finish(third);
  EXPECT_GE(recorder.entries()[1].started, recorder.entries()[1].enqueued);
  EXPECT_GE(recorder.entries()[1].done, recorder.entries()[1].started);
}

TEST(FlightRecorder, WorkTicksAndWaitingDoesNot) {
  FlightRecorder recorder;
  const auto before = recorder.ticks();
  recorder.waits_for(3, "its scalars have not come");
  EXPECT_EQ(recorder.ticks(), before);
  recorder.note("partial", -1, 8);
  EXPECT_GT(recorder.ticks(), before);
}

TEST(FlightRecorder, ActivityNamesWhatIsWaitedForAndSurvivesAnError) {
  FlightRecorder recorder;
  {
    const ActivityScope outer(&recorder, "evaluate", 16);
    { const ActivityScope inner(&recorder, "scalars", 16); }
    EXPECT_STREQ(recorder.activity().name, "evaluate");
  }
  EXPECT_STREQ(recorder.activity().name, "start");
  try {
    const ActivityScope scope(&recorder, "reduce", 17);
    recorder.waits_for(2, "its partial sum of bucket 0 has not come");
    throw std::runtime_error("deadline");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(recorder.summary(),
            "reduce of step 17 for 0.0 s, waiting for rank 2: its partial sum of bucket 0 has not come");
}

TEST(FlightRecorder, DumpHoldsEverything) {
  FlightRecorder recorder;
  recorder.finish(recorder.enqueue("send", 5, 1234));
  const std::string folder = testing::TempDir() + "flight_recorder_test/flight";
  const std::string path = dump_flight(recorder, folder, 3, "a \"host\"");
  EXPECT_EQ(path, folder + "/rank-3.json");
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find("\"rank\": 3, \"host\": \"a \\\"host\\\"\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"kind\": \"send\", \"step\": 0, \"peer\": 5, \"bytes\": 1234"), std::string::npos) << text;
  EXPECT_EQ(dump_flight(recorder, "/proc/nowhere", 3, "a"), "");
}

TEST(FlightRecorder, ManyThreadsMayRecord) {
  FlightRecorder recorder(64);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) recorder.finish(recorder.enqueue("send", i, 1));
      (void)recorder.json(0, "a");
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(recorder.entries().back().number, 3999U);
}

}  // namespace
}  // namespace lockstep
