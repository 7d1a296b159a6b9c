#include "observe/telemetry/progress.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "observe/telemetry/event_text.hpp"
#include "telemetry/captured.hpp"

namespace lockstep::telemetry {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  std::unique_ptr<events::Sink> make(bool terminal, bool color = false, int columns = 200) {
    return make_progress(captured_.print(),
                         {.terminal = terminal, .color = color, .columns = columns, .clock = [this] { return now_; }});
  }
  static events::Start start(std::int64_t steps, double epochs) {
    return {.job = "digits",
            .ranks = 2,
            .threads = 1,
            .hosts = 1,
            .micro_batches = 8,
            .batch_size = 128,
            .parameters = 52650,
            .steps = steps,
            .epochs = epochs,
            .device = "a CPU, avx2",
            .samples = 50048,
            .validation_samples = 500,
            .exactness = "bitwise",
            .arena_bytes = 1234567,
            .seconds = 0.0421,
            .version = "0.1.0"};
  }
  static events::Step step(std::int64_t step, double loss, double data_wait = 0) {
    return {.step = step,
            .epoch = 1,
            .loss = loss,
            .learning_rate = 0.1,
            .samples_per_second = 1234.5,
            .data_wait_seconds = data_wait};
  }
  Captured captured_;
  double now_ = 100;
};

TEST_F(ProgressTest, StartNamesWhatIsRun) {
  events::Start event = start(3910, 10);
  make(false)->event(event);
  const std::string expected =
      "lockstep 0.1.0  digits\n"
      "  model  52,650 parameters\n"
      "  data   50,048 samples, 500 for validation\n"
      "  length 3,910 steps of 128 samples, 10 epochs\n"
      "  ranks  2 on 1 host, 1 thread each, 8 micro-batches\n"
      "  device a CPU, avx2\n";
  EXPECT_EQ(captured_.take(), expected);
  event.exactness = "exact gradient, not bitwise";
  event.index = "made";
  event.run_directory = "runs/digits";
  make(false)->event(event);
  EXPECT_EQ(captured_.take(),
            expected + "  run    runs/digits\n  exact  exact gradient, not bitwise\n  also   index made\n");
}

TEST_F(ProgressTest, AFileGetsTheFirstStepThenALineATenth) {
  const auto progress = make(false);
  progress->event(start(100, 2));
  EXPECT_NE(captured_.take().find("\n  length 100 steps of 128 samples, 2 epochs\n"), std::string::npos);
  now_ += 1;
  progress->event(step(1, 2.3, 0.5));
  EXPECT_EQ(captured_.take(), "step   1/100  epoch 1/2   loss 2.3000    1,235 samples/s  data wait 50 %\n");
  for (int i = 2; i < 10; ++i) {
    now_ += 1;
    progress->event(step(i, 2.0, 0.1));
    EXPECT_EQ(captured_.take(), "") << i;
  }
  now_ += 1;
  progress->event(step(10, 1.5, 0.1));  // 9 steps in 9 s, each waited for 0.1 s
  EXPECT_EQ(captured_.take(), "step  10/100  epoch 1/2   loss 1.5000    1,235 samples/s  1:30 left  data wait 10 %\n");
}

TEST_F(ProgressTest, SkippedUpdatesAreCountedUpToTheNextLine) {
  const auto progress = make(false);
  progress->event(start(100, 2));
  (void)captured_.take();
  std::vector<std::string> lines(1);
  for (int i = 1; i <= 20; ++i) {
    events::Step event = step(i, 2.0);
    event.skipped = i == 1 || i == 4 || i == 5;
    progress->event(event);
    lines.push_back(captured_.take());
  }
  EXPECT_EQ(lines[1], "step   1/100  epoch 1/2   loss 2.0000  1 update skipped    1,235 samples/s\n");
  EXPECT_NE(lines[10].find("loss 2.0000  2 updates skipped  "), std::string::npos) << lines[10];
  EXPECT_EQ(lines[20].find("skipped"), std::string::npos) << lines[20];
}

TEST_F(ProgressTest, AFileGetsALineEveryTenSecondsAndFewerInALongRun) {
  const auto progress = make(false);
  progress->event(start(1'000'000, 0));
  progress->event(step(1, 2.3));
  (void)captured_.take();
  now_ += 9.9;
  progress->event(step(2, 2.3));
  EXPECT_EQ(captured_.take(), "");
  now_ += 0.2;
  progress->event(step(3, 2.3));
  EXPECT_NE(captured_.take(), "");
  now_ += 3600;
  progress->event(step(4, 2.3));
  EXPECT_NE(captured_.take(), "");
  now_ += 59;
  progress->event(step(5, 2.3));
  EXPECT_EQ(captured_.take(), "");
  now_ += 2;
  progress->event(step(6, 2.3));
  EXPECT_NE(captured_.take(), "");
}

TEST_F(ProgressTest, TheLastStepIsAlwaysShown) {
  for (const bool terminal : {false, true}) {
    const auto progress = make(terminal);
    progress->event(start(2, 1));
    progress->event(step(1, 2.3));
    (void)captured_.take();
    progress->event(step(2, 2.25));
    EXPECT_NE(captured_.take().find("step 2/2  epoch 1/1   loss 2.2500"), std::string::npos) << terminal;
  }
}

TEST_F(ProgressTest, ATerminalLineIsWrittenOverTenTimesASecondAndCutToTheWidth) {
  const auto progress = make(true, false, 20);
  progress->event(start(100, 1));
  (void)captured_.take();
  now_ += 0.15;
  progress->event(step(1, 2.5));
  EXPECT_EQ(captured_.take(), "\r\x1b[Kepoch 1/1  1/100  l");
  now_ += 0.05;
  progress->event(step(2, 2.5));
  EXPECT_EQ(captured_.take(), "");
  now_ += 0.1;
  progress->event(step(3, 2.5));
  EXPECT_EQ(captured_.take(), "\r\x1b[Kepoch 1/1  3/100  l");
  progress->event(events::Checkpoint{.step = 3, .path = "runs/a/3", .seconds = 0.25});
  EXPECT_EQ(captured_.take(), "\r\x1b[Kstep   3/100  checkpoint  runs/a/3\n");
}

TEST_F(ProgressTest, ANarrowTerminalGetsFewerWords) {
  events::Step last = step(700, 0.05123, 0.001);
  last.metrics = {{"accuracy", 0.9844}};
  const std::string narrow = "\r\x1b[Kepoch 1/4  700/748  loss 0.0512  accuracy 0.9844  1,235/s  0:10 left  wait 0 %";
  const std::string wide =
      "\r\x1b[Kstep 700/748  epoch 1/4   loss 0.0512  accuracy 0.9844    1,235 samples/s  0:10 left  "
      "data wait 0 %";
  for (const int columns : {80, 120}) {
    now_ = 100;
    const auto progress = make(true, false, columns);
    progress->event(start(748, 4));
    now_ += 1;
    progress->event(step(699, 0.06));
    (void)captured_.take();
    now_ += 0.2;
    progress->event(last);
    EXPECT_EQ(captured_.take(), columns == 80 ? narrow : wide);
  }
}

TEST_F(ProgressTest, AnEvaluationIsALineThatStays) {
  make(false)->event(
      events::Evaluation{.step = 5, .set = "validation", .loss = 0.12345, .metrics = {{"accuracy", 0.9712}}});
  EXPECT_EQ(captured_.take(), "step 5  validation  loss 0.1235  accuracy 0.9712\n");
}

TEST_F(ProgressTest, TheStepLineHasTheFirstMetricOfTheBatch) {
  events::Step event = step(6, 1);
  event.metrics = {{"accuracy", 0.875}, {"top5", 1.0}};
  make(false)->event(event);
  EXPECT_EQ(captured_.take(), "step 6  epoch 1     loss 1.0000  accuracy 0.8750    1,235 samples/s  data wait 0 %\n");
}

events::End end_of_two_ranks() {
  return {.outcome = "done",
          .steps = 3910,
          .samples = 500480,
          .seconds = 62,
          .samples_per_second = 8072.26,
          .loss = 0.0625,
          .metrics = {{"accuracy", 0.975}, {"loss", 0.0825}},
          .phases = {{"reduce", 6.2}, {"compute", 50.0}, {"update", 0.1}, {"other", 6.0}},
          .parameters_sha256 = "abc123",
          .micro_batches_by_rank = {{0, 5}, {1, 3}},
          .bytes_sent_by_rank = {{0, 2.5e6}, {1, 3e9}},
          .bytes_by_formula_by_rank = {{0, 2.5e6}, {1, 3e9}},
          .compute_seconds_by_rank = {{0, 50.0}, {1, 61.0}},
          .bytes_read_by_rank = {{0, 0.0}, {1, 0.0}},
          .prefetch = {{"depth", 4}, {"threads", 1}},
          .sample_cache_bytes = 16000,
          .checkpoint = "runs/a/checkpoints/step-00003910"};
}

TEST_F(ProgressTest, TheEndHasMetricsTimesAndTheHash) {
  make(false)->event(end_of_two_ranks());
  EXPECT_EQ(captured_.take(),
            "done  3,910 steps, 500,480 samples in 1:02: 8,072 samples/s\n"
            "  validation  loss 0.0825  accuracy 0.9750\n"
            "  time        1:02: compute 80 %, reduce 10 %, other 10 %\n"
            "  share       5, 3\n"
            "  computing   50 s, 1:01\n"
            "  sent        2.5 MB, 3 GB\n"
            "  prefetch    depth 4, threads 1\n"
            "  cache       16 kB\n"
            "  parameters sha256: abc123\n");
}

TEST_F(ProgressTest, OneRankSendsNothingAndBytesByTheFormulaAreNewsWhereTheyDiffer) {
  events::End end = end_of_two_ranks();
  end.bytes_by_formula_by_rank = {{0, 2.5e6}, {1, 2e9}};
  make(false)->event(end);
  EXPECT_NE(captured_.take().find("  sent        2.5 MB, 3 GB\n  by formula  2.5 MB, 2 GB\n"), std::string::npos);
  end.fetched_parameter_bytes_by_rank = {{0, 1e6}, {1, 4e6}};
  make(false)->event(end);
  EXPECT_NE(captured_.take().find("  by formula  2.5 MB, 2 GB\n  fetched     1 MB, 4 MB\n"), std::string::npos);
  end.fetched_parameter_bytes_by_rank.reset();
  for (auto* values : {&end.micro_batches_by_rank, &end.bytes_sent_by_rank, &end.compute_seconds_by_rank})
    *values = {{0, 8}};
  end.bytes_read_by_rank = {{0, 1e6}};
  end.metrics = {};
  make(false)->event(end);
  EXPECT_EQ(captured_.take(),
            "done  3,910 steps, 500,480 samples in 1:02: 8,072 samples/s\n"
            "  last step   loss 0.0625\n"
            "  time        1:02: compute 80 %, reduce 10 %, other 10 %\n"
            "  read        1 MB\n"
            "  prefetch    depth 4, threads 1\n"
            "  cache       16 kB\n"
            "  parameters sha256: abc123\n");
}

TEST_F(ProgressTest, MovesOfSharesAreToldWhereThereWereAny) {
  events::End end = end_of_two_ranks();
  end.waited_seconds_by_rank = {{0, 12.0}, {1, 0.5}};
  end.held_up_seconds_by_rank = {{0, 0.5}, {1, 12.0}};  // shown by balance report only
  end.share_moves = 0;
  make(false)->event(end);
  EXPECT_NE(captured_.take().find("  share       5, 3\n  computing   50 s, 1:01\n  waiting     12 s, 0.5 s\n  sent "),
            std::string::npos);
  end.share_moves = 2;
  make(false)->event(end);
  EXPECT_NE(captured_.take().find("  share       5, 3\n  moves       2\n  computing "), std::string::npos);
}

TEST_F(ProgressTest, TheEndSaysWhenARunIsNotDone) {
  const auto progress = make(false);
  progress->event(start(4000, 10));
  (void)captured_.take();
  events::End end = end_of_two_ranks();
  end.outcome = "stopped early";
  progress->event(end);
  EXPECT_TRUE(captured_.take().starts_with("stopped early  step 3,910 of 4,000, 500,480 samples in 1:02: 8,072"));
  end.best = {{"accuracy", 0.9875}};
  end.evaluations_since_best = 5;
  progress->event(end);
  EXPECT_NE(captured_.take().find("\n  best        accuracy 0.9875, 5 evaluations before\n"), std::string::npos);
  end.best.reset();
  end.outcome = "interrupted";
  end.interrupted = true;
  progress->event(end);
  std::string text = captured_.take();
  EXPECT_TRUE(text.starts_with("interrupted  step 3,910 of 4,000, 500,480 samples in 1:02: 8,072 samples/s\n"));
  EXPECT_NE(text.find("  to resume   run the same command again; it resumes from runs/a/checkpoints/step-00003910\n"),
            std::string::npos);
  end.checkpoint.reset();
  progress->event(end);
  text = captured_.take();
  EXPECT_NE(
      text.find("  to resume   no checkpoint was written (checkpoint: never); another run starts from the beginning\n"),
      std::string::npos);
}

TEST_F(ProgressTest, ARunThatWasDoneBeforeSaysSo) {
  make(false)->event(events::End{.outcome = "already finished",
                                 .steps = 748,
                                 .seconds = 3.2e-8,
                                 .metrics = {{"accuracy", 0.975}, {"loss", 0.0825}},
                                 .phases = {{"data_wait", 0.0}},
                                 .parameters_sha256 = "abc123",
                                 .prefetch = {{"depth", 4}, {"threads", 1}},
                                 .sample_cache_bytes = 16000});
  EXPECT_EQ(captured_.take(),
            "already finished at step 748: nothing to do\n"
            "  validation  loss 0.0825  accuracy 0.9750\n"
            "  prefetch    depth 4, threads 1\n"
            "  cache       16 kB\n"
            "  parameters sha256: abc123\n");
}

TEST_F(ProgressTest, AWarningIsOneSentenceAndAResumedRunSaysFromWhere) {
  const auto progress = make(false);
  progress->event(events::Warning{"passed over a damaged checkpoint: a"});
  EXPECT_EQ(captured_.take(), "warning: passed over a damaged checkpoint: a\n");
  progress->event(events::Restart{.step = 40, .path = "runs/a/checkpoints/step-00000040"});
  EXPECT_EQ(captured_.take(), "step 40  resumed     from runs/a/checkpoints/step-00000040\n");
  make(true, true)->event(events::Warning{"a"});
  EXPECT_EQ(captured_.take(), "\r\x1b[K\x1b[33mwarning:\x1b[0m a\n");
}

TEST_F(ProgressTest, PartsOfAModelAreALineEach) {
  const auto progress = make(false);
  progress->event(
      events::Part{.part = 0, .parts = 2, .ranks = "0", .first = "conv1", .last = "max_pool1", .parameters = 160});
  progress->event(events::Part{
      .part = 1, .parts = 2, .ranks = "1 2", .first = "conv2", .last = "metric.accuracy", .parameters = 20330});
  EXPECT_EQ(captured_.take(),
            "  parts  part 0 on rank 0: conv1 to max_pool1, 160 parameters\n"
            "         part 1 on ranks 1 2: conv2 to metric.accuracy, 20,330 parameters\n");
}

TEST_F(ProgressTest, GpusAreATable) {
  const auto gpu = [](std::int64_t rank, const std::string& host, const std::string& model, std::int64_t gibibytes,
                      std::optional<std::string> version) {
    return events::Gpu{.rank = rank,
                       .host = host,
                       .model = model,
                       .memory_bytes = gibibytes << 30,
                       .compute_capability = "9.0",
                       .multiprocessors = 132,
                       .clock_mhz = rank == 0 ? 1980 : 0,
                       .pci_bus = "0000:3b:00.0",
                       .driver = "13.0",
                       .driver_version = std::move(version)};
  };
  const auto progress = make(false);
  progress->event(start(100, 2));
  (void)captured_.take();
  progress->event(gpu(0, "node7", "NVIDIA H100", 80, "580.65.06"));
  EXPECT_EQ(captured_.take(), "");  // columns are as wide as the widest value of all ranks
  progress->event(gpu(1, "b", "NVIDIA H100 NVL", 9, std::nullopt));
  EXPECT_EQ(captured_.take(),
            "  gpu    rank  host   model              memory  compute capability  multiprocessors     clock  "
            "PCI address   driver\n"
            "            0  node7  NVIDIA H100      80.0 GiB                 9.0              132  1980 MHz  "
            "0000:3b:00.0  580.65.06, for CUDA 13.0\n"
            "            1  b      NVIDIA H100 NVL   9.0 GiB                 9.0              132            "
            "0000:3b:00.0  for CUDA 13.0\n");
  EXPECT_EQ(event_text(gpu(0, "b", "A", 8, "1"), {}),  // for one alone, as in reports
            "  gpu    rank 0 on b: A, 8.0 GiB, compute capability 9.0, 132 multiprocessors at 1980 MHz, 0000:3b:00.0, "
            "driver 1, for CUDA 13.0");
  auto other = gpu(0, "c", "A", 8, "1");
  other.memory_clock_mhz = 2619;
  progress->event(other);
  progress->event(events::Warning{"that was all"});
  EXPECT_EQ(captured_.take(),
            "  gpu    rank  host  model   memory  compute capability  multiprocessors     clock  memory clock  "
            "PCI address   driver\n"
            "            0  c     A      8.0 GiB                 9.0              132  1980 MHz      2619 MHz  "
            "0000:3b:00.0  1, for CUDA 13.0\n"
            "warning: that was all\n");
}

TEST_F(ProgressTest, WhatTheSupervisorAndTheBalancerDoIsShownFieldByField) {
  const auto progress = make(false);
  progress->event(events::Launch{.attempt = 1, .ranks = 2, .on = "a:1,b:1"});
  EXPECT_EQ(captured_.take(), "launch:  attempt 1  ranks 2  on a:1,b:1\n");
  progress->event(events::Restart{.reason = "death",
                                  .message = "rank 1 (host vm) died",
                                  .rank = 1,
                                  .host = "vm",
                                  .step = 160,
                                  .attempt = 1,
                                  .after_seconds = 0});
  EXPECT_EQ(
      captured_.take(),
      "step 160  restart     rank 1 (host vm) died  reason death  rank 1  host vm  attempt 1  after seconds 0 s\n");
  progress->event(events::Balance{.step = 4,
                                  .reason = "rank 1 is slow",
                                  .evidence = "steps of this run",
                                  .shares_by_rank = {{0, 5}, {1, 3}},
                                  .micro_batches_moved = 1,
                                  .predicted_seconds = 0.5});
  EXPECT_EQ(captured_.take(),
            "balance:  step 4  reason rank 1 is slow  evidence steps of this run  shares by rank 5, 3  micro batches "
            "moved 1  "
            "predicted seconds 0.5 s\n");
}

TEST_F(ProgressTest, ColoursOnlyWhereAsked) {
  const events::Checkpoint event{.step = 3, .path = "a"};
  make(true, true)->event(event);
  EXPECT_EQ(captured_.take(), "\r\x1b[K\x1b[2mstep 3  checkpoint  a\x1b[0m\n");
  make(true, false)->event(event);
  EXPECT_EQ(captured_.take(), "\r\x1b[Kstep 3  checkpoint  a\n");
}

TEST_F(ProgressTest, AFileIsNoTerminal) {
  const int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const ProgressOptions options = progress_options_for(file);
  EXPECT_FALSE(options.terminal);
  EXPECT_FALSE(options.color);
  ::close(file);
}

}  // namespace
}  // namespace lockstep::telemetry
