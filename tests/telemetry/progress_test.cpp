#include "telemetry/progress.hpp"

#include <gtest/gtest.h>

#include "telemetry/captured.hpp"
#include "telemetry/event_text.hpp"

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
  Record record = {{"job", std::string("digits")},
                   {"ranks", std::int64_t{2}},
                   {"threads", std::int64_t{1}},
                   {"hosts", std::int64_t{1}},
                   {"shards", std::int64_t{8}},
                   {"batch_size", std::int64_t{128}},
                   {"parameters", std::int64_t{52650}},
                   {"states", std::int64_t{0}},
                   {"steps", std::int64_t{3910}},
                   {"epochs", 10.0},
                   {"device", std::string("a CPU, avx2")},
                   {"samples", std::int64_t{50048}},
                   {"validation_samples", std::int64_t{500}},
                   {"exactness", std::string("bitwise")},
                   {"arena_bytes", std::int64_t{1234567}},
                   {"seconds", 0.0421},
                   {"version", std::string("0.1.0")}};
  make(false)->event("start", record);
  const std::string expected =
      "lockstep 0.1.0  digits\n"
      "  model  52,650 parameters\n"
      "  data   50,048 samples, 500 for validation\n"
      "  length 3,910 steps of 128 samples, 10 epochs\n"
      "  ranks  2 on 1 host, 1 thread each, 8 shards\n"
      "  device a CPU, avx2\n";
  EXPECT_EQ(captured_.take(), expected);
  for (auto& [name, field] : record) {
    if (name == "exactness") field = std::string("exact gradient, not bitwise");
  }
  record.emplace_back("stages", std::int64_t{2});
  make(false)->event("start", record);
  EXPECT_EQ(captured_.take(), expected + "  exact  exact gradient, not bitwise\n  also   stages 2\n");
}

TEST_F(ProgressTest, AFileGetsTheFirstStepThenALineATenth) {
  const auto progress = make(false);
  progress->event("start", start(100, 2));
  EXPECT_EQ(captured_.take(), "digits\n  length 100 steps, 2 epochs\n");
  now_ += 1;
  progress->event("step", step(1, 2.3, 0.5));
  EXPECT_EQ(captured_.take(), "step   1/100  epoch 1/2   loss 2.3000    1,235 samples/s  data wait 50 %\n");
  for (int i = 2; i < 10; ++i) {
    now_ += 1;
    progress->event("step", step(i, 2.0, 0.1));
    EXPECT_EQ(captured_.take(), "") << i;
  }
  now_ += 1;
  progress->event("step", step(10, 1.5, 0.1));  // 9 steps in 9 s, each waited for 0.1 s
  EXPECT_EQ(captured_.take(), "step  10/100  epoch 1/2   loss 1.5000    1,235 samples/s  1:30 left  data wait 10 %\n");
}

TEST_F(ProgressTest, UpdatesThatWereLeftOutAreCountedUpToTheNextLine) {
  const auto progress = make(false);
  progress->event("start", start(100, 2));
  (void)captured_.take();
  std::vector<std::string> lines(1);
  for (int i = 1; i <= 20; ++i) {
    Record record = step(i, 2.0);
    record.emplace_back("left_out", i == 1 || i == 4 || i == 5);
    progress->event("step", record);
    lines.push_back(captured_.take());
  }
  EXPECT_EQ(lines[1], "step   1/100  epoch 1/2   loss 2.0000  1 update left out    1,235 samples/s\n");
  EXPECT_NE(lines[10].find("loss 2.0000  2 updates left out  "), std::string::npos) << lines[10];
  EXPECT_EQ(lines[20].find("left out"), std::string::npos) << lines[20];
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
    EXPECT_NE(captured_.take().find("step 2/2  epoch 1/1   loss 2.2500"), std::string::npos) << terminal;
  }
}

TEST_F(ProgressTest, ATerminalLineIsWrittenOverTenTimesASecondAndCutToTheWidth) {
  const auto progress = make(true, false, 20);
  progress->event("start", start(100, 1));
  (void)captured_.take();
  now_ += 0.15;
  progress->event("step", step(1, 2.5));
  EXPECT_EQ(captured_.take(), "\r\x1b[Kepoch 1/1  1/100  l");
  now_ += 0.05;
  progress->event("step", step(2, 2.5));
  EXPECT_EQ(captured_.take(), "");
  now_ += 0.1;
  progress->event("step", step(3, 2.5));
  EXPECT_EQ(captured_.take(), "\r\x1b[Kepoch 1/1  3/100  l");
  progress->event("checkpoint", {{"step", std::int64_t{3}}, {"path", std::string("runs/a/3")}, {"seconds", 0.25}});
  EXPECT_EQ(captured_.take(), "\r\x1b[Kstep   3/100  checkpoint  runs/a/3\n");
}

TEST_F(ProgressTest, ANarrowTerminalGetsFewerWords) {
  Record record = step(700, 0.05123, 0.001);
  record.emplace_back("metrics", Map{{"accuracy", 0.9844}});
  const std::string narrow = "\r\x1b[Kepoch 1/4  700/748  loss 0.0512  accuracy 0.9844  1,235/s  0:10 left  wait 0 %";
  const std::string wide =
      "\r\x1b[Kstep 700/748  epoch 1/4   loss 0.0512  accuracy 0.9844    1,235 samples/s  0:10 left  "
      "data wait 0 %";
  for (const int columns : {80, 120}) {
    now_ = 100;
    const auto progress = make(true, false, columns);
    progress->event("start", start(748, 4));
    now_ += 1;
    progress->event("step", step(699, 0.06));
    (void)captured_.take();
    now_ += 0.2;
    progress->event("step", record);
    EXPECT_EQ(captured_.take(), columns == 80 ? narrow : wide);
  }
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
  EXPECT_EQ(captured_.take(), "step 6  epoch 1     loss 1.0000  accuracy 0.8750    1,235 samples/s  data wait 0 %\n");
}

Record end_of_two_ranks() {
  return {{"outcome", std::string("done")},
          {"steps", std::int64_t{3910}},
          {"samples", std::int64_t{500480}},
          {"seconds", 62.0},
          {"samples_per_second", 8072.26},
          {"metrics", Map{{"accuracy", 0.975}, {"loss", 0.0825}}},
          {"phases", Map{{"exchange", 6.2}, {"compute", 50.0}, {"update", 0.1}, {"other", 6.0}}},
          {"loss", 0.0625},
          {"interrupted", false},
          {"parameters_sha256", std::string("abc123")},
          {"shards_by_rank", Map{{"0", 5}, {"1", 3}}},
          {"bytes_sent_by_rank", Map{{"0", 2.5e6}, {"1", 3e9}}},
          {"bytes_by_formula_by_rank", Map{{"0", 2.5e6}, {"1", 3e9}}},
          {"compute_seconds_by_rank", Map{{"0", 50.0}, {"1", 61.0}}},
          {"bytes_read_by_rank", Map{{"0", 0.0}, {"1", 0.0}}},
          {"checkpoint", std::string("runs/a/checkpoints/step-00003910")}};
}

void set(Record& record, const std::string& name, Field value) {
  for (auto& [key, field] : record) {
    if (key == name) field = value;
  }
}

TEST_F(ProgressTest, TheEndHasMetricsTimesAndTheHash) {
  make(false)->event("end", end_of_two_ranks());
  EXPECT_EQ(captured_.take(),
            "done  3,910 steps, 500,480 samples in 1:02: 8,072 samples/s\n"
            "  validation  loss 0.0825  accuracy 0.9750\n"
            "  time        1:02: compute 80 %, exchange 10 %, other 10 %\n"
            "  shards      5, 3\n"
            "  computing   50 s, 1:01\n"
            "  sent        2.5 MB, 3 GB\n"
            "  parameters sha256: abc123\n");
}

TEST_F(ProgressTest, OneRankSendsNothingAndBytesByTheFormulaAreNewsWhereTheyDiffer) {
  Record record = end_of_two_ranks();
  set(record, "bytes_by_formula_by_rank", Map{{"0", 2.5e6}, {"1", 2e9}});
  make(false)->event("end", record);
  EXPECT_NE(captured_.take().find("  sent        2.5 MB, 3 GB\n  by formula  2.5 MB, 2 GB\n"), std::string::npos);
  for (const char* name : {"shards_by_rank", "bytes_sent_by_rank", "compute_seconds_by_rank"}) {
    set(record, name, Map{{"0", 8}});
  }
  set(record, "bytes_read_by_rank", Map{{"0", 1e6}});
  set(record, "metrics", Map{});
  make(false)->event("end", record);
  EXPECT_EQ(captured_.take(),
            "done  3,910 steps, 500,480 samples in 1:02: 8,072 samples/s\n"
            "  last step   loss 0.0625\n"
            "  time        1:02: compute 80 %, exchange 10 %, other 10 %\n"
            "  read        1 MB\n"
            "  parameters sha256: abc123\n");
}

TEST_F(ProgressTest, MovesOfSharesAreToldWhereThereWereAny) {
  Record record = end_of_two_ranks();
  record.emplace_back("waited_seconds_by_rank", Map{{"0", 12.0}, {"1", 0.5}});
  record.emplace_back("held_up_seconds_by_rank", Map{{"0", 0.5}, {"1", 12.0}});  // balance report has it
  record.emplace_back("share_moves", std::int64_t{0});
  make(false)->event("end", record);
  EXPECT_NE(captured_.take().find("  shards      5, 3\n  computing   50 s, 1:01\n  waiting     12 s, 0.5 s\n  sent "),
            std::string::npos);
  set(record, "share_moves", std::int64_t{2});
  make(false)->event("end", record);
  EXPECT_NE(captured_.take().find("  shards      5, 3\n  moves       2\n  computing "), std::string::npos);
}

TEST_F(ProgressTest, TheEndSaysWhenARunIsNotDone) {
  const auto progress = make(false);
  progress->event("start", start(4000, 10));
  (void)captured_.take();
  Record record = end_of_two_ranks();
  set(record, "outcome", std::string("stopped early"));
  progress->event("end", record);
  EXPECT_TRUE(captured_.take().starts_with("stopped early  step 3,910 of 4,000, 500,480 samples in 1:02: 8,072"));
  set(record, "outcome", std::string("interrupted"));
  set(record, "interrupted", true);
  progress->event("end", record);
  std::string text = captured_.take();
  EXPECT_TRUE(text.starts_with("interrupted  step 3,910 of 4,000, 500,480 samples in 1:02: 8,072 samples/s\n"));
  EXPECT_NE(text.find("  to go on    run the same command again; it resumes from runs/a/checkpoints/step-00003910\n"),
            std::string::npos);
  std::erase_if(record, [](const auto& field) { return field.first == "checkpoint"; });
  progress->event("end", record);
  text = captured_.take();
  EXPECT_NE(text.find("  to go on    nothing was kept (checkpoint: never); another run begins anew\n"),
            std::string::npos);
}

TEST_F(ProgressTest, ARunThatWasDoneBeforeSaysSo) {
  make(false)->event("end", {{"outcome", std::string("already finished")},
                             {"steps", std::int64_t{748}},
                             {"samples", std::int64_t{0}},
                             {"seconds", 3.2e-8},
                             {"samples_per_second", 0.0},
                             {"metrics", Map{{"accuracy", 0.975}, {"loss", 0.0825}}},
                             {"phases", Map{{"data_wait", 0.0}}},
                             {"interrupted", false},
                             {"parameters_sha256", std::string("abc123")}});
  EXPECT_EQ(captured_.take(),
            "already finished at step 748: nothing to do\n"
            "  validation  loss 0.0825  accuracy 0.9750\n"
            "  parameters sha256: abc123\n");
}

TEST_F(ProgressTest, AWarningIsOneSentenceAndAResumedRunSaysFromWhere) {
  const auto progress = make(false);
  progress->event("warning", {{"message", std::string("passed over a damaged checkpoint: a")}});
  EXPECT_EQ(captured_.take(), "warning: passed over a damaged checkpoint: a\n");
  progress->event("restart", {{"step", std::int64_t{40}}, {"path", std::string("runs/a/checkpoints/step-00000040")}});
  EXPECT_EQ(captured_.take(), "step 40  going on    from runs/a/checkpoints/step-00000040\n");
  make(true, true)->event("warning", {{"message", std::string("a")}});
  EXPECT_EQ(captured_.take(), "\r\x1b[K\x1b[33mwarning:\x1b[0m a\n");
}

TEST_F(ProgressTest, GpusAreATable) {
  const auto gpu = [](std::int64_t rank, const std::string& host, const std::string& model, std::int64_t gibibytes,
                      const std::string& version) {
    return Record{{"rank", rank},
                  {"host", host},
                  {"model", model},
                  {"memory_bytes", gibibytes << 30},
                  {"compute_capability", std::string("9.0")},
                  {"multiprocessors", std::int64_t{132}},
                  {"clock_mhz", std::int64_t{rank == 0 ? 1980 : 0}},
                  {"memory_clock_mhz", std::int64_t{0}},
                  {"pci_bus", std::string("0000:3b:00.0")},
                  {"driver", std::string("13.0")},
                  {"driver_version", version}};
  };
  const auto progress = make(false);
  progress->event("start", {{"job", std::string("digits")}, {"ranks", std::int64_t{2}}});
  (void)captured_.take();
  progress->event("gpu", gpu(0, "node7", "NVIDIA H100", 80, "580.65.06"));
  EXPECT_EQ(captured_.take(), "");  // the columns are as wide as the widest of all ranks
  progress->event("gpu", gpu(1, "b", "NVIDIA H100 NVL", 9, ""));
  EXPECT_EQ(captured_.take(),
            "  gpu    rank  host   model              memory  compute capability  multiprocessors     clock  "
            "PCI address   driver\n"
            "            0  node7  NVIDIA H100      80.0 GiB                 9.0              132  1980 MHz  "
            "0000:3b:00.0  580.65.06, for CUDA 13.0\n"
            "            1  b      NVIDIA H100 NVL   9.0 GiB                 9.0              132            "
            "0000:3b:00.0  for CUDA 13.0\n");
  EXPECT_EQ(event_text("gpu", gpu(0, "b", "A", 8, "1"), {}),  // one alone, as reports have them
            "  gpu    rank 0 on b: A, 8.0 GiB, compute capability 9.0, 132 multiprocessors at 1980 MHz, 0000:3b:00.0, "
            "driver 1, for CUDA 13.0");
  auto other = gpu(0, "c", "A", 8, "1");
  other[7].second = std::int64_t{2619};
  other.emplace_back("color", std::string("green"));
  progress->event("gpu", other);
  progress->event("warning", {{"message", std::string("that was all")}});
  EXPECT_EQ(captured_.take(),
            "  gpu    rank  host  model   memory  compute capability  multiprocessors     clock  memory clock  "
            "PCI address   driver\n"
            "            0  c     A      8.0 GiB                 9.0              132  1980 MHz      2619 MHz  "
            "0000:3b:00.0  1, for CUDA 13.0  color green\n"
            "warning: that was all\n");
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

}  // namespace
}  // namespace lockstep::telemetry
