// The points of curves; TensorBoard itself reads whole files in tests/observability/tensorboard_test.py.
#include "observe/telemetry/tensorboard.hpp"

#include <gtest/gtest.h>
#include <tensorboard.pb.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "core/files.hpp"

namespace lockstep::telemetry {

namespace {

using BoardPoints = std::vector<std::pair<std::int64_t, float>>;

/// By tag, of all files of a folder in the order of their names.
std::map<std::string, BoardPoints> points_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename()] = read_whole_file(entry.path()).value_or("");
  }
  std::map<std::string, BoardPoints> points;
  for (const auto& [name, bytes] : files) {
    constexpr std::size_t kBefore = 12, kAfter = 4;  // a length and checksums
    for (std::size_t at = 0; at < bytes.size();) {
      std::uint64_t length = 0;
      std::memcpy(&length, bytes.data() + at, sizeof(length));
      tensorboard::Event event;
      EXPECT_TRUE(event.ParseFromString(bytes.substr(at + kBefore, length)));
      for (const auto& value : event.summary().value()) {
        if (value.value_case() != tensorboard::Summary::Value::kSimpleValue) continue;
        points[value.tag()].emplace_back(event.step(), value.simple_value());
      }
      at += kBefore + length + kAfter;
    }
  }
  return points;
}

class BoardCurves : public testing::Test {
 protected:
  BoardCurves() : folder_((std::filesystem::temp_directory_path() / "lockstep-board-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~BoardCurves() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

events::Balance move_at(std::int64_t step, double first, double second) {
  events::Balance move;
  move.step = step;
  move.shares_by_rank = {{0, first}, {1, second}};
  return move;
}

events::End end_at(std::int64_t step, bool interrupted = false) {
  events::End end;
  end.steps = step;
  end.interrupted = interrupted;
  return end;
}

}  // namespace

// `step` of a move are the steps done before it.
TEST_F(BoardCurves, MicroBatchesOfRanksAreSteps) {
  {
    TensorBoard board(folder_, 0);
    for (const auto& move : {move_at(0, 4, 4), move_at(40, 3, 5), move_at(41, 2, 6), move_at(90, 6, 2)}) {
      board.event(move);
    }
    board.event(end_at(100));
  }
  const auto points = points_in(folder_);
  EXPECT_EQ(points.at("work_micro_batches/rank_0"),
            (BoardPoints{{1, 4}, {40, 4}, {41, 3}, {42, 2}, {90, 2}, {91, 6}, {100, 6}}));
  EXPECT_EQ(points.at("work_micro_batches/rank_1"),
            (BoardPoints{{1, 4}, {40, 4}, {41, 5}, {42, 6}, {90, 6}, {91, 2}, {100, 2}}));
}

TEST_F(BoardCurves, MicroBatchesOfRanksGoOnAfterAResume) {
  {
    TensorBoard board(folder_, 0);
    board.event(move_at(3, 3, 5));
    board.event(end_at(8, true));
  }
  {
    TensorBoard board(folder_, 8);
    board.event(move_at(8, 5, 3));
    board.event(end_at(12));
  }
  EXPECT_EQ(points_in(folder_).at("work_micro_batches/rank_0"), (BoardPoints{{4, 3}, {8, 3}, {9, 5}, {12, 5}}));
}

TEST_F(BoardCurves, HaveTheStepsThatTheJobNames) {
  {
    TensorBoard board(folder_, 0, KeptSteps(Span{0.5, true}));
    board.event(events::Start{.steps = 12, .epochs = 2});
    for (std::int64_t step = 1; step <= 8; ++step) {
      board.event(events::Step{.step = step, .loss = 0.5, .seconds = static_cast<double>(step * step)});
    }
    board.event(events::Evaluation{.step = 7, .set = "validation", .loss = 2});
  }
  const auto points = points_in(folder_);
  EXPECT_EQ(points.at("train/loss"), (BoardPoints{{3, 0.5}, {6, 0.5}}));
  EXPECT_EQ(points.at("work/step_seconds"), (BoardPoints{{3, 9 - 4}, {6, 36 - 25}})) << "of one step each";
  EXPECT_EQ(points.at("validation/loss"), (BoardPoints{{7, 2}}));
}

TEST_F(BoardCurves, WithoutAMoveThereAreNone) {
  {
    TensorBoard board(folder_, 0);
    board.event(end_at(8));
  }
  EXPECT_TRUE(points_in(folder_).empty());
}

}  // namespace lockstep::telemetry
