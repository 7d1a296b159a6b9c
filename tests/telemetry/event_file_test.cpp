#include "telemetry/event_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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
  file->event("warning", {{"message", std::string("early")}});
  EXPECT_FALSE(std::filesystem::exists(path_)) << "the directory may be another run's";
  file->event("start", {{"ranks", std::int64_t{2}}});
  file->event("step", {{"step", std::int64_t{1}}});
  const auto events = lines();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["event"], "warning");
  EXPECT_EQ(events[1]["ranks"], 2);
  EXPECT_EQ(events[2]["step"], 1);
  EXPECT_GT(events[2]["time"], 1.6e9);
}

TEST_F(EventFile, GoesOnInTheSameFile) {
  path_ = folder_ / "events.jsonl";
  for (int run = 0; run < 2; ++run) make_event_file(path_)->event("start", {{"run", std::int64_t{run}}});
  const auto events = lines();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1]["run"], 1);
}

TEST_F(EventFile, ADiskThatIsFullEndsNothing) {
  const auto file = make_event_file("/dev/full");
  file->event("start", {{"ranks", std::int64_t{2}}});
  file->event("step", {{"step", std::int64_t{1}}});
  const auto nowhere = make_event_file("/proc/none/events.jsonl");
  EXPECT_NO_THROW(nowhere->event("start", {}));
}

}  // namespace lockstep::telemetry
