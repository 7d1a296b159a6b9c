#include "telemetry/event_log.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "telemetry/captured.hpp"

namespace lockstep::telemetry {
namespace {

using Map = std::map<std::string, double>;

TEST(EventLog, WritesOneObjectALineInTheOrderOfTheRecord) {
  Captured captured;
  const auto log = make_json_log(captured.file());
  log->event("start", {{"job", std::string("digits")}, {"ranks", std::int64_t{2}}, {"resumed", false}});
  EXPECT_EQ(captured.take(), "{\"event\":\"start\",\"job\":\"digits\",\"ranks\":2,\"resumed\":false}\n");
  log->event("eval", {{"step", std::int64_t{10}}, {"loss", 0.25}, {"metrics", Map{{"top_5", 1}, {"accuracy", 0.5}}}});
  EXPECT_EQ(captured.take(),
            "{\"event\":\"eval\",\"step\":10,\"loss\":0.25,\"metrics\":{\"accuracy\":0.5,\"top_5\":1.0}}\n");
}

TEST(EventLog, NumbersThatAreNotFiniteAreStrings) {
  Captured captured;
  const double inf = std::numeric_limits<double>::infinity();
  make_json_log(captured.file())->event("step", {{"loss", std::nan("")}, {"m", Map{{"high", inf}, {"low", -inf}}}});
  EXPECT_EQ(captured.take(), "{\"event\":\"step\",\"loss\":\"nan\",\"m\":{\"high\":\"inf\",\"low\":\"-inf\"}}\n");
}

TEST(EventLog, DoublesAndLargeIntegersComeBackExactly) {
  Captured captured;
  make_json_log(captured.file())
      ->event("end", {{"seconds", 0.1 + 0.2}, {"samples", std::int64_t{9007199254740993}}, {"empty", Map{}}});
  const auto line = nlohmann::json::parse(captured.take());
  EXPECT_EQ(line["seconds"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(line["samples"].get<std::int64_t>(), 9007199254740993);
  EXPECT_EQ(line["empty"], nlohmann::json::object());
}

TEST(EventLog, TextIsEscapedAndBytesThatAreNoUtf8AreReplaced) {
  Captured captured;
  make_json_log(captured.file())->event("checkpoint", {{"path", std::string("a\n\"b\"\xff")}});
  EXPECT_EQ(captured.take(), "{\"event\":\"checkpoint\",\"path\":\"a\\n\\\"b\\\"\xef\xbf\xbd\"}\n");
}

TEST(EventLog, AFullDiskIsAnError) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  try {
    make_json_log(full)->event("step", {{"loss", 1.0}});
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::infrastructure);
    EXPECT_STREQ(error.what(), "cannot write the event log: No space left on device");
  }
  std::fclose(full);
}

TEST(Tee, TellsEverySinkInOrder) {
  Captured captured;
  std::vector<std::unique_ptr<Sink>> sinks;
  sinks.push_back(make_json_log(captured.file()));
  sinks.push_back(make_json_log(captured.file()));
  make_tee(std::move(sinks))->event("end", {{"steps", std::int64_t{1}}});
  EXPECT_EQ(captured.take(), "{\"event\":\"end\",\"steps\":1}\n{\"event\":\"end\",\"steps\":1}\n");
}

}  // namespace
}  // namespace lockstep::telemetry
