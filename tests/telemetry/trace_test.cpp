// Timelines with known answers: clock alignment, verdicts, and reading files back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "lockstep/error.hpp"
#include "observe/telemetry/diagnosis.hpp"

namespace lockstep::telemetry {
namespace {

/// One step of a rank with one worker: seconds of waiting for data, inside kernels and outside them.
struct Step {
  double data = 0, kernels = 0.05, launch = 0;
};

/// `steps` identical steps of each rank: all wait for the last one at the all-reduce, which then takes `reduce`.
std::vector<RankTrace> traces_of(const std::vector<Step>& ranks, double reduce, double update = 0.001,
                                 std::int64_t steps = 4) {
  std::vector<RankTrace> traces;
  double slowest = 0;
  for (const Step& step : ranks) slowest = std::max(slowest, step.data + step.kernels + step.launch);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankTrace trace{
        .rank = static_cast<int>(r), .ranks = static_cast<int>(ranks.size()), .host = "node", .kernels = 10};
    trace.host += std::to_string(r);
    const auto& [data, kernels, launch] = ranks[r];
    for (std::int64_t i = 0; i < steps; ++i) {
      const double start = 100 + static_cast<double>(i) * (slowest + reduce + update);
      const double computed = start + data + kernels + launch, reduced = start + slowest + reduce;
      const int track = worker_track(0);
      trace.spans.push_back({"compute", kPhaseTrack, i + 1, -1, start, computed});
      trace.spans.push_back({"data wait", track, i + 1, 0, start, start + data});
      trace.spans.push_back({"micro_batch", track, i + 1, 0, start + data, computed, kernels});
      trace.spans.push_back({"reduce", kPhaseTrack, i + 1, -1, computed, reduced});
      trace.spans.push_back({"update", kPhaseTrack, i + 1, -1, reduced, reduced + update});
    }
    traces.push_back(std::move(trace));
  }
  return traces;
}

Diagnosis diagnosis_of(const std::vector<RankTrace>& traces) {
  return diagnose(critical_path(traces), traces);
}

}  // namespace

TEST(CriticalPath, GoesThroughTheRankThatCameLast) {
  const auto traces = traces_of({{0.01, 0.02, 0}, {0, 0.06, 0.004}}, 0.005);
  const auto path = critical_path(traces);
  ASSERT_EQ(path.size(), 4U);
  for (const PathStep& step : path) {
    EXPECT_EQ(step.rank, 1);
    EXPECT_NEAR(step.seconds, 0.07, 1e-9);
    EXPECT_NEAR(step.compute, 0.04, 1e-9);  // the mean of 20 and 60 ms
    EXPECT_NEAR(step.excess, 0.02, 1e-9);
    EXPECT_NEAR(step.launch, 0.004, 1e-9);
    EXPECT_NEAR(step.reduce, 0.005, 1e-9);
    EXPECT_NEAR(step.update, 0.001, 1e-9);
    const double parts = step.data + step.compute + step.excess + step.launch + step.reduce + step.update;
    EXPECT_NEAR(parts, step.seconds, 1e-9);
    ASSERT_EQ(step.spans.size(), 4U);
    EXPECT_EQ(step.spans.front().name, "data wait");
    EXPECT_EQ(step.spans.back().name, "update");
  }
}

// Forward, a wait for the gradients of other parts, backward: as on a rank that computes a part.
TEST(CriticalPath, SaysWhatWaitingForOtherPartsTakes) {
  auto traces = traces_of({{.data = 0.01, .kernels = 0.09}}, 0.01, 0);
  for (TimelineSpan& span : traces[0].spans) {
    if (span.name != "micro_batch") continue;
    span = {"forward", span.track, span.step, 0, span.start, span.start + 0.02, 0.02};
  }
  const auto forwards = traces[0].spans;
  for (const TimelineSpan& span : forwards) {
    if (span.name != "forward") continue;
    traces[0].spans.push_back({kGradientWait, span.track, span.step, 0, span.end, span.end + 0.03});
    traces[0].spans.push_back({"backward", span.track, span.step, 0, span.end + 0.03, span.end + 0.07, 0.04});
  }
  const auto path = critical_path(traces);
  ASSERT_EQ(path.size(), 4U);
  EXPECT_NEAR(path.front().parts, 0.03, 1e-9);
  EXPECT_NEAR(path.front().compute, 0.06, 1e-9);
  EXPECT_NEAR(path.front().launch, 0, 1e-9);
  const Diagnosis d = diagnose(path, traces);
  EXPECT_EQ(d.bound, Bound::parts);
  EXPECT_EQ(
      d.sentence,
      "pipeline-bound: of a step of 110 ms computing is 55 %, waiting for data 9 %, for other parts 27 %, exposed "
      "communication 9 %, load imbalance 0 %, kernel launches 0 %, update 0 %. Try more micro-batches, a larger "
      "parallel.in_flight, or parts of more even cost.");
}

TEST(CriticalPath, EvaluationAndCheckpointAreNoPartOfAStep) {
  auto traces = traces_of({{}}, 0, 0.001, 1);
  const double end = traces[0].spans.back().end;
  traces[0].spans.push_back({"evaluate", kPhaseTrack, 1, -1, end, end + 1});
  traces[0].spans.push_back({"checkpoint", kPhaseTrack, 1, -1, end + 1, end + 1.5});
  EXPECT_NEAR(critical_path(traces).front().seconds, 0.051, 1e-9);
}

TEST(CriticalPath, ThreadsBesideTheStepsAreNoPartOfIt) {
  auto traces = traces_of({{}, {.data = 0.01}}, 0.005);
  const auto before = critical_path(traces);
  for (RankTrace& trace : traces) {
    trace.spans.push_back({"load", prefetch_track(1), 2, 0, 100, 200});
    trace.spans.push_back({"load", prefetch_track(0), 9, 0, 100, 200});
    trace.spans.push_back({"write", kCheckpointTrack, 1, -1, 100, 300});
  }
  const auto after = critical_path(traces);
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].seconds, before[i].seconds);
    EXPECT_EQ(after[i].data, before[i].data);
    EXPECT_EQ(after[i].compute, before[i].compute);
    EXPECT_EQ(after[i].launch, before[i].launch);
    EXPECT_EQ(after[i].spans.size(), before[i].spans.size());
  }
}

TEST(CriticalPath, LeavesOutStepsThatARankLacks) {
  auto traces = traces_of({{}, {}}, 0.01);
  std::erase_if(traces[1].spans, [](const auto& span) { return span.step == 2 && span.name == "update"; });
  EXPECT_EQ(critical_path(traces).size(), 3U);
}

TEST(CriticalPath, ARankWithoutMicroBatchesWaitsOnly) {
  auto traces = traces_of({{}, {}}, 0.01);
  std::erase_if(traces[0].spans, [](const auto& span) { return span.track == worker_track(0); });
  const auto path = critical_path(traces);
  ASSERT_EQ(path.size(), 4U);
  EXPECT_NEAR(path.front().excess + path.front().compute, path.front().rank == 1 ? 0.05 : 0, 1e-9);
}

TEST(Diagnosis, NamesTheLargestPartThatIsNotComputing) {
  const auto bound = [](const std::vector<Step>& ranks, double reduce) {
    return diagnosis_of(traces_of(ranks, reduce)).bound;
  };
  EXPECT_EQ(bound({{}, {}}, 0.005), Bound::compute);
  EXPECT_EQ(bound({{}, {.data = 0.03}}, 0.005), Bound::input);
  EXPECT_EQ(bound({{}, {}}, 0.03), Bound::reduce);
  EXPECT_EQ(bound({{}, {.kernels = 0.12}}, 0.005), Bound::imbalance);
  EXPECT_EQ(bound({{.launch = 0.03}, {.launch = 0.03}}, 0.005), Bound::launch);
}

TEST(Diagnosis, IsASentenceWithEvidence) {
  const auto d = diagnosis_of(traces_of({{}, {.data = 0.044}}, 0.005));
  EXPECT_EQ(d.sentence,
            "input-bound: of a step of 100 ms computing is 50 %, waiting for data 44 %, exposed communication 5 %, "
            "load imbalance 0 %, kernel launches 0 %, update 1 %; rank 1 on node1 waits most often. Try "
            "data.threads, data.cache=memory, or packed data (lockstep data pack).");
  EXPECT_NEAR(d.kernel, 0.005, 1e-9);
}

TEST(RankTrace, ComesBackFromItsFile) {
  std::string folder = (std::filesystem::temp_directory_path() / "lockstep-trace-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  auto traces = traces_of({{.data = 0.25}, {}}, 0.5);
  traces[0].clocks = {{99, 0, 0}};
  traces[1].clocks = {{50, 1.5, 1e-5}, {60, 2.5, 2e-5}};
  traces[1].spans.push_back({"bucket", kBucketTrack, 1, 3, 100.5, 101.25});
  for (const auto& trace : traces) EXPECT_EQ(write_trace(folder, trace), "");
  const auto read = read_traces(folder);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[1].clocks[1].offset, 2.5);
  EXPECT_EQ(read[1].kernels, 10U);
  for (std::size_t r = 0; r < read.size(); ++r) {
    ASSERT_EQ(read[r].spans.size(), traces[r].spans.size());
    for (std::size_t i = 0; i < read[r].spans.size(); ++i) {
      const TimelineSpan &found = read[r].spans[i], &written = traces[r].spans[i];
      EXPECT_EQ(found.name, written.name);
      EXPECT_EQ(found.track, written.track);
      EXPECT_EQ(found.step, written.step);
      EXPECT_EQ(found.item, written.item);
      EXPECT_NEAR(found.start, written.start, 1e-9);
      EXPECT_NEAR(found.end, written.end, 1e-9);
      EXPECT_EQ(found.kernels, written.kernels);
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(RankTrace, TheOffsetOfItsClockRunsInALine) {
  RankTrace trace;
  trace.clocks = {{1000, -900, 0}, {1100, -890, 0}};  // rank 0's clock runs a tenth faster
  trace.spans = {{"compute", kPhaseTrack, 1, -1, 1000, 1050}};
  align(trace);
  EXPECT_NEAR(trace.spans[0].start, 100, 1e-9);
  EXPECT_NEAR(trace.spans[0].end, 155, 1e-9);
}

TEST(RankTrace, AFolderThatCannotBeWrittenIsTold) {
  EXPECT_EQ(write_trace("/proc/none", RankTrace{}).find("/proc/none"), 0U);
}

}  // namespace lockstep::telemetry
