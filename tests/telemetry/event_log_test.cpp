#include "observe/telemetry/event_log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "telemetry/captured.hpp"

namespace lockstep::telemetry {
namespace {

class EventFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "lockstep-events-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> found;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) found.push_back(nlohmann::json::parse(line));
    return found;
  }
  std::filesystem::path folder_;
  std::string path_;
};

}  // namespace

TEST_F(EventFile, IsMadeByTheStartAndHoldsWhatCameBefore) {
  path_ = folder_ / "run" / "events.jsonl";
  const auto file = make_event_file(path_);
  file->event(events::Warning{"early"});
  EXPECT_FALSE(std::filesystem::exists(path_)) << "the directory may be another run's";
  file->event(events::Start{.ranks = 2});
  file->event(events::Step{.step = 1});
  const auto found = lines();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0]["event"], "warning");
  EXPECT_EQ(found[1]["ranks"], 2);
  EXPECT_EQ(found[2]["step"], 1);
  EXPECT_GT(found[2]["time"], 1.6e9);
}

TEST_F(EventFile, GoesOnInTheSameFile) {
  path_ = folder_ / "events.jsonl";
  for (int run = 0; run < 2; ++run) make_event_file(path_)->event(events::Start{.ranks = run});
  const auto found = lines();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1]["ranks"], 1);
}

// A training that fails emits no end.
TEST_F(EventFile, HasTheStepsThatTheJobNamesAndTheLastOne) {
  path_ = folder_ / "events.jsonl";
  {
    const auto file = make_event_file(path_, Span{4, false});
    file->event(events::Start{});
    for (int step = 1; step <= 11; ++step) file->event(events::Step{.step = step});
  }
  std::vector<int> steps;
  for (const auto& line : lines()) {
    if (line["event"] == "step") steps.push_back(line["step"]);
  }
  EXPECT_EQ(steps, (std::vector<int>{1, 4, 8, 11}));
}

TEST_F(EventFile, ADiskThatIsFullEndsNothing) {
  const auto file = make_event_file("/dev/full");
  file->event(events::Start{.ranks = 2});
  file->event(events::Step{.step = 1});
  const auto nowhere = make_event_file("/proc/none/events.jsonl");
  EXPECT_NO_THROW(nowhere->event(events::Start{}));
}

TEST(JsonLog, WritesALineAnEvent) {
  Captured captured;
  const auto log = make_json_log(captured.print());
  log->event(events::Warning{"a"});
  EXPECT_EQ(captured.take(), "{\"event\":\"warning\",\"message\":\"a\"}\n");
  log->event(events::Warning{"b"});
  EXPECT_EQ(captured.take(), "{\"event\":\"warning\",\"message\":\"b\"}\n");
}

TEST(JsonLog, AFullDiskIsAnError) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  try {
    Console console(full, {.left_out = left_out_text});
    make_json_log(console.printer())->event(events::Step{.loss = 1});
    require_written(console);
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::infrastructure);
    EXPECT_STREQ(error.what(), "cannot write the event log: No space left on device");
  }
  ::close(full);
}

TEST(Tee, PassesEachEventToEverySinkInOrder) {
  Captured captured;
  std::vector<std::unique_ptr<events::Sink>> sinks;
  sinks.push_back(make_json_log(captured.print()));
  sinks.push_back(make_json_log(captured.print()));
  make_tee(std::move(sinks))->event(events::Warning{"a"});
  EXPECT_EQ(captured.take(), "{\"event\":\"warning\",\"message\":\"a\"}\n{\"event\":\"warning\",\"message\":\"a\"}\n");
}

}  // namespace lockstep::telemetry
