#include "comm/reduce/gradient_reducer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "comm/error_of.hpp"
#include "comm/reduce_run.hpp"
#include "core/trace.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

std::vector<float> reduced(const GradientReducer& reducer, int bucket) {
  const auto values = reducer.reduced(bucket);
  return {values.begin(), values.end()};
}

TEST(GradientReducer, TwoHundredStepsWithNewPlacementsUnderRandomSleeps) {
  std::mt19937 random(2);
  for (const bool several_hosts : {false, true}) {
    Case c;
    c.buckets = buckets_of({700, 0, 9000}, 12);
    c.ranks = 4;
    c.workers = 2;
    c.sleeps = true;
    c.hosts = several_hosts ? std::vector{0, 1, 0, 1} : std::vector{0, 0, 0, 0};
    for (int s = 0; s < 200; ++s) c.assignments.push_back(random_assignment(random, c.buckets.micro_batches, c.hosts));
    EXPECT_EQ(wrong(c, expected_of(c), {.timeout = 60s}), "");
  }
}

TEST(GradientReducer, ARightMicroBatchIsAddedToItsSiblingWhereThatIsThere) {
  run_in_threads(1, [](Communicator& communicator) {
    const auto reducer = make_reducer(communicator, buckets_of({3}, 3));
    reducer->begin_step(1, place_micro_batches(equal_counts(3, 1)));
    const GradientBuffer left = reducer->buffer(0, 0);
    EXPECT_FALSE(left.add);
    fill(left, {1, 2, 3});
    reducer->ready(0, 0);
    const GradientBuffer last = reducer->buffer(2, 0);
    EXPECT_FALSE(last.add) << "its sibling, the sum of 0 and 1, is not there yet";
    fill(last, {100, 200, 300});
    reducer->ready(2, 0);
    const GradientBuffer right = reducer->buffer(1, 0);
    EXPECT_TRUE(right.add);
    EXPECT_EQ(right.memory, left.memory);
    fill(right, {10, 20, 30});
    reducer->ready(1, 0);
    reducer->finish();
    EXPECT_EQ(reduced(*reducer, 0), (std::vector<float>{111, 222, 333}));
  });
}

TEST(GradientReducer, AlignedSplitCostsWhatARingAllReduceDoes) {
  run_in_threads(4, [](Communicator& communicator) {
    Case c;
    c.buckets = buckets_of({16384}, 8);
    const auto reducer = make_reducer(communicator, c.buckets);
    const MicroBatchAssignment assignment = place_micro_batches(equal_counts(8, 4));
    reducer->begin_step(1, assignment);
    compute(*reducer, c, 1, assignment.micro_batches_of_rank[static_cast<std::size_t>(communicator.rank())], 1);
    reducer->finish();
    EXPECT_EQ(reducer->statistics().shared_memory_bytes, 2 * 3 * 16384 * sizeof(float) / 4);
  });
}

// Without exact sums the bits depend on the placement: this is why the tree is needed.
TEST(GradientReducer, PlainAllReduceDiffersAtThreeRanks) {
  const MicroBatchAssignment assignment = place_micro_batches(equal_counts(8, 3));
  Case c;
  c.buckets = buckets_of({5000}, 8);
  std::vector<std::vector<float>> found(3);
  run_in_threads(3, [&](Communicator& communicator) {
    const auto reducer = make_reducer(communicator, c.buckets, {.exact = false});
    const auto mine = static_cast<std::size_t>(communicator.rank());
    reducer->begin_step(1, assignment);
    compute(*reducer, c, 1, assignment.micro_batches_of_rank[mine], 1);
    reducer->finish();
    found[mine] = reduced(*reducer, 0);
  });
  const auto expected = tree_sum(1, 8, 0, 5000);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_NE(found[0], expected);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[0][i], expected[i], 1e-3);
}

TEST(GradientReducer, PlainAllReduceWithARankWithoutMicroBatches) {
  run_in_threads(2, [&](Communicator& communicator) {
    Case c;
    c.buckets = buckets_of({100}, 2);
    const auto reducer = make_reducer(communicator, c.buckets, {.exact = false});
    const MicroBatchAssignment assignment{{{}, {0, 1}}};
    reducer->begin_step(1, assignment);
    compute(*reducer, c, 1, assignment.micro_batches_of_rank[static_cast<std::size_t>(communicator.rank())], 1);
    reducer->finish();
    EXPECT_EQ(reduced(*reducer, 0), tree_sum(1, 2, 0, 100));
  });
}

TEST(GradientReducer, EveryBucketIsUnderWayOnceAStepForATimeline) {
  const int steps = 300;
  Case c;
  c.buckets = buckets_of({16, 16}, 4);
  const MicroBatchAssignment assignment = place_micro_batches(equal_counts(4, 2));
  run_in_threads(2, [&](Communicator& communicator) {
    const auto reducer = make_reducer(communicator, c.buckets);
    TraceRecorder recorder;
    reducer->trace(&recorder);
    for (int step = 0; step < steps; ++step) {
      reducer->begin_step(static_cast<std::uint64_t>(step), assignment);
      compute(*reducer, c, static_cast<std::uint64_t>(step),
              assignment.micro_batches_of_rank[static_cast<std::size_t>(communicator.rank())], 1);
      reducer->finish();
    }
    std::map<std::pair<std::uint64_t, int>, int> seen;
    for (const TraceSpan& span : recorder.take()) {
      if (span.track == kBucketTrack) ++seen[{span.step, span.item}];
    }
    EXPECT_EQ(seen.size(), 2U * steps);
    for (const auto& [bucket, times] : seen) {
      EXPECT_EQ(times, 1) << "step " << bucket.first << " bucket " << bucket.second;
    }
  });
}

TEST(GradientReducer, FewGradientsAreAliveAtOnce) {
  for (const int workers : {1, 2, 3}) {
    run_in_threads(1, [&](Communicator& communicator) {
      Case c;
      c.workers = workers;
      c.buckets = buckets_of({1000, 3000}, 64);
      const auto reducer = make_reducer(communicator, c.buckets);
      const MicroBatchAssignment assignment = place_micro_batches(equal_counts(64, 1));
      for (std::uint64_t step = 1; step <= 3; ++step) {
        reducer->begin_step(step, assignment);
        compute(*reducer, c, step, assignment.micro_batches_of_rank[0], 1);
        reducer->finish();
      }
      // A sum waits only for a sibling that holds the next micro-batch or one in progress: at most 6 waiters for each.
      // A delayed worker makes its 6 wait.
      const int bound = workers == 1 ? 6 + 1 : workers * (6 + 1) + 6;
      EXPECT_LE(reducer->statistics().peak_elements, bound * 4000);
    });
  }
}

constexpr const char* kHint =
    "; look at that rank's log: it ended, hangs or is much slower than this one (then raise job.timeout)";

// Rank 2 maps the memory with the others in step 1 and never arrives in step 2.
std::string missing_rank_message(const std::vector<int>& hosts, bool in_scalars) {
  std::string message;
  run_in_threads(
      3,
      [&](Communicator& communicator) {
        Case c;
        c.buckets = buckets_of({30000}, 3);
        const MicroBatchAssignment assignment = place_micro_batches(equal_counts(3, 3));
        const auto reducer = make_reducer(communicator, c.buckets, {.timeout = 300ms});
        const auto& micro_batches = assignment.micro_batches_of_rank[static_cast<std::size_t>(communicator.rank())];
        for (std::uint64_t step = 16; step <= 17; ++step) {
          if (communicator.rank() == 2 && step == 17) {
            std::this_thread::sleep_for(1s);
            return;
          }
          reducer->begin_step(step, assignment);
          if (in_scalars && step == 17) {
            const std::vector<double> own = scalars_of(1, micro_batches);
            const std::string found = error_of([&] { (void)reducer->scalars({own, 3}); });
            if (communicator.rank() == 1) message = found;
            return;
          }
          compute(*reducer, c, step, micro_batches, 1);
          if (step == 16) {
            reducer->finish();
          } else {
            const std::string found = error_of([&] { reducer->finish(); });
            if (communicator.rank() == 1) message = found;
            std::this_thread::sleep_for(300ms);  // both survivors see the deadline
          }
        }
      },
      hosts);
  return message;
}

TEST(GradientReducer, DeadlineNamesTheRankThatNeverArrived) {
  EXPECT_EQ(missing_rank_message({0, 0, 0}, false),
            std::string("rank 1 on host a: waited 0.3 s for rank 2 (host a) in 'reduce' of step 17: it has not "
                        "begun this step") +
                kHint);
  EXPECT_EQ(missing_rank_message({0, 0, 1}, false),
            std::string("rank 1 on host a: waited 0.3 s for rank 2 (host b) in 'reduce' of step 17: its partial "
                        "sum of bucket 0 has not come") +
                kHint);
  EXPECT_EQ(missing_rank_message({0, 0, 0}, true),
            std::string("rank 1 on host a: waited 0.3 s for rank 2 (host a) in 'scalars' of step 17") + kHint);
  EXPECT_EQ(missing_rank_message({0, 0, 1}, true),
            std::string("rank 1 on host a: waited 0.3 s for rank 2 (host b) in 'scalars' of step 17") + kHint);
}

}  // namespace
}  // namespace lockstep::comm
