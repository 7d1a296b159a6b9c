#include "telemetry/progress.hpp"

#include <gtest/gtest.h>

#include "telemetry/captured.hpp"
#include "telemetry/text.hpp"

namespace lockstep::telemetry {
namespace {

using Map = std::map<std::string, double>;

class ProgressTest : public ::testing::Test {
 protected:
  std::unique_ptr<Sink> make(bool terminal, bool color = false, int columns = 200) {
    return make_progress(captured_.file(),
                         {.terminal = terminal, .color = color, .columns = columns, .clock = [this] { return now_; }});
  }
  static Record start(std::int64_t steps, std::int64_t epochs) {
    return {{"job", std::string("digits")}, {"steps", steps}, {"epochs", epochs}};
  }
  static Record step(std::int64_t step, double loss, double data_wait = 0) {
    return {{"step", step},         {"epoch", std::int64_t{1}},     {"loss", loss},
            {"learning_rate", 0.1}, {"samples_per_second", 1234.5}, {"data_wait_seconds", data_wait},
            {"seconds", 0.0}};
  }
  Captured captured_;
  double now_ = 100;
};

TEST_F(ProgressTest, StartNamesWhatIsRun) {
  make(false)->event("start", {{"job", std::string("digits")},
                               {"ranks", std::int64_t{2}},
                               {"threads", std::int64_t{1}},
                               {"hosts", std::int64_t{1}},
                               {"shards", std::int64_t{8}},
                               {"batch_size", std::int64_t{128}},
                               {"parameters", std::int64_t{52650}},
                               {"steps", std::int64_t{3910}},
                               {"epochs", 10.0},
                               {"device", std::string("cpu")},
                               {"arena_bytes", std::int64_t{1234567}},
                               {"seconds", 0.0421},
                               {"version", std::string("0.1.0")},
                               {"resumed_at", std::int64_t{40}}});
  EXPECT_EQ(captured_.take(),
            "lockstep 0.1.0  digits  2 ranks  1 thread  1 host  8 shards  batch 128\n"
            "  52,650 parameters  10 epochs  3,910 steps  device cpu  arena bytes 1.23 MB  seconds 0.0421 s  "
            "resumed at 40\n");
}

TEST_F(ProgressTest, AFileGetsTheFirstStepThenALineATenth) {
  const auto progress = make(false);
  progress->event("start", start(100, 2));
  EXPECT_EQ(captured_.take(), "digits\n  2 epochs  100 steps\n");
  now_ += 1;
  progress->event("step", step(1, 2.3, 0.5));
  EXPECT_EQ(captured_.take(), "epoch 1/2  step 1/100  loss 2.3  1,235 samples/s  data wait 50 %\n");
  for (int i = 2; i < 10; ++i) {
    now_ += 1;
    progress->event("step", step(i, 2.0, 0.1));
    EXPECT_EQ(captured_.take(), "") << i;
  }
  now_ += 1;
  progress->event("step", step(10, 1.5, 0.1));  // 9 steps in 9 s, each waited for 0.1 s
  EXPECT_EQ(captured_.take(), "epoch 1/2  step 10/100  loss 1.5  1,235 samples/s  1:30 left  data wait 10 %\n");
}

TEST_F(ProgressTest, AFileGetsALineEveryTenSecondsAndFewerInALongRun) {
  const auto progress = make(false);
  progress->event("start", start(1'000'000, 0));
  progress->event("step", step(1, 2.3));
  (void)captured_.take();
  now_ += 9.9;
  progress->event("step", step(2, 2.3));
  EXPECT_EQ(captured_.take(), "");
  now_ += 0.2;
  progress->event("step", step(3, 2.3));
  EXPECT_NE(captured_.take(), "");
  now_ += 3600;
  progress->event("step", step(4, 2.3));
  EXPECT_NE(captured_.take(), "");
  now_ += 59;
  progress->event("step", step(5, 2.3));
  EXPECT_EQ(captured_.take(), "");
  now_ += 2;
  progress->event("step", step(6, 2.3));
  EXPECT_NE(captured_.take(), "");
}

TEST_F(ProgressTest, TheLastStepIsAlwaysShown) {
  for (const bool terminal : {false, true}) {
    const auto progress = make(terminal);
    progress->event("start", start(2, 1));
    progress->event("step", step(1, 2.3));
    (void)captured_.take();
    progress->event("step", step(2, 2.25));
    EXPECT_NE(captured_.take().find("step 2/2  loss 2.25"), std::string::npos) << terminal;
  }
}

TEST_F(ProgressTest, ATerminalLineIsWrittenOverTenTimesASecondAndCutToTheWidth) {
  const auto progress = make(true, false, 20);
  progress->event("start", start(100, 1));
  (void)captured_.take();
  now_ += 0.15;
  progress->event("step", step(1, 2.5));
  EXPECT_EQ(captured_.take(), "\r\x1b[Kepoch 1/1  step 1/1");
  now_ += 0.05;
  progress->event("step", step(2, 2.5));
  EXPECT_EQ(captured_.take(), "");
  now_ += 0.1;
  progress->event("step", step(3, 2.5));
  EXPECT_EQ(captured_.take(), "\r\x1b[Kepoch 1/1  step 3/1");
  progress->event("checkpoint", {{"step", std::int64_t{3}}, {"path", std::string("runs/a/3")}, {"seconds", 0.25}});
  EXPECT_EQ(captured_.take(), "\r\x1b[Kstep 3  checkpoint runs/a/3  0.25 s\n");
}

TEST_F(ProgressTest, AnEvaluationIsALineThatStays) {
  make(false)->event("eval", {{"step", std::int64_t{5}},
                              {"set", std::string("validation")},
                              {"loss", 0.12345},
                              {"metrics", Map{{"accuracy", 0.9712}}}});
  EXPECT_EQ(captured_.take(), "step 5  validation  loss 0.1235  accuracy 0.9712\n");
}

TEST_F(ProgressTest, TheStepLineHasTheFirstMetricOfTheBatch) {
  Record record = step(6, 1);
  record.emplace_back("metrics", Map{{"accuracy", 0.875}, {"top5", 1.0}});
  make(false)->event("step", record);
  EXPECT_EQ(captured_.take(), "epoch 1  step 6  loss 1  accuracy 0.875  1,235 samples/s  data wait 0 %\n");
}

TEST_F(ProgressTest, TheEndHasMetricsPhasesAndTheHash) {
  make(false)->event("end", {{"steps", std::int64_t{3910}},
                             {"samples", std::int64_t{500480}},
                             {"seconds", 62.0},
                             {"samples_per_second", 8072.26},
                             {"metrics", Map{{"accuracy", 0.975}}},
                             {"phases", Map{{"exchange", 6.2}, {"compute", 50.0}}},
                             {"loss", 0.0625},
                             {"interrupted", false},
                             {"parameters_sha256", std::string("abc123")},
                             {"shards_by_rank", Map{{"0", 5}, {"1", 3}}},
                             {"bytes_sent_by_rank", Map{{"0", 2.5e6}, {"1", 3e9}}},
                             {"compute_seconds_by_rank", Map{{"0", 50.0}, {"1", 61.0}}}});
  EXPECT_EQ(captured_.take(),
            "done  3,910 steps  500,480 samples  1:02  8,072 samples/s  loss 0.0625\n"
            "  accuracy 0.975\n"
            "  phases: compute 50 s (81 %)  exchange 6.2 s (10 %)\n"
            "  shards by rank: 5, 3\n"
            "  bytes sent by rank: 2.5 MB, 3 GB\n"
            "  compute seconds by rank: 50 s, 1:01\n"
            "  parameters sha256: abc123\n");
}

TEST_F(ProgressTest, EventsThatAreNotKnownAreShownAsTheyAre) {
  make(false)->event("balance", {{"shares", Map{{"0", 5}, {"1", 3}}}, {"moved", true}});
  EXPECT_EQ(captured_.take(), "balance:  shares 0 5, 1 3  moved yes\n");
}

TEST_F(ProgressTest, ColoursOnlyWhereAsked) {
  const Record record = {{"steps", std::int64_t{1}}};
  make(true, true)->event("end", record);
  EXPECT_EQ(captured_.take(), "\r\x1b[K\x1b[32mdone\x1b[0m  1 step\n");
  make(true, false)->event("end", record);
  EXPECT_EQ(captured_.take(), "\r\x1b[Kdone  1 step\n");
}

TEST_F(ProgressTest, AFileIsNoTerminal) {
  std::FILE* file = std::fopen("/dev/null", "w");
  const ProgressOptions options = progress_options_for(file);
  EXPECT_FALSE(options.terminal);
  EXPECT_FALSE(options.color);
  std::fclose(file);
}

TEST(Text, ManyRanksAreARange) {
  Map values;
  for (int rank = 0; rank < 12; ++rank) values[std::to_string(rank)] = rank;
  EXPECT_EQ(to_text("shards_by_rank", values), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11");
  for (int rank = 12; rank < 20; ++rank) values[std::to_string(rank)] = rank;
  EXPECT_EQ(to_text("shards_by_rank", values), "0 to 19");
}

TEST(Text, Numbers) {
  EXPECT_EQ(byte_count(0), "0 B");
  EXPECT_EQ(byte_count(999), "999 B");
  EXPECT_EQ(byte_count(999600), "1 MB");
  EXPECT_EQ(byte_count(1.5e15), "1.5e+03 TB");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(short_number(0.123456), "0.1235");
  EXPECT_EQ(short_number(1e-5), "1e-05");
  EXPECT_EQ(duration(0.1234), "0.123 s");
  EXPECT_EQ(duration(59.99), "1:00");
  EXPECT_EQ(duration(3723), "1:02:03");
}

}  // namespace
}  // namespace lockstep::telemetry
