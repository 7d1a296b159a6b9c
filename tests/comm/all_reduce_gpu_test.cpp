// The all-reduce on GPUs: the sums' bits, and the order of every access, on fakes that check it.
#include "comm/reduce/all_reduce_gpu.hpp"

#include <gtest/gtest.h>

#include <regex>

#include "comm/reduce_run.hpp"
#include "comm/transport/recorded.hpp"
#include "cuda/checked_transport.hpp"
#include "cuda/faulty_transport.hpp"
#include "device/fake_gpu.hpp"
#include "lockstep/error.hpp"
#include "seeds.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using device::FakeGpu;

constexpr ReducerOptions kGpuOptions{.timeout = 60s};
constexpr unsigned kGpuSeeds = 25;

using device::bytes_of;

/// `fault`: null for no fault.
std::unique_ptr<GpuTransport> checked_transport(Communicator& communicator, FakeGpu& gpu,
                                                const std::shared_ptr<TransportFault>& fault) {
  if (communicator.size() == 1) return nullptr;
  auto transport = std::make_unique<HostTransport>(communicator, 60s, touches(gpu));
  if (!fault) return transport;
  return std::make_unique<FaultyTransport<FakeGpu>>(std::move(transport), gpu, fault);
}

/// A rank on a fake: workers write buffers on their own streams, and sums are read on another.
class FakeSide {
 public:
  FakeSide(Communicator& communicator, const Case& c, ReducerOptions options,
           const std::shared_ptr<TransportFault>& fault = nullptr)
      : reducer_(communicator, c.buckets, options, gpu_, checked_transport(communicator, gpu_, fault)),
        reader_(gpu_.make_stream()) {
    for (int w = 0; w < c.workers; ++w) streams_.push_back(gpu_.make_stream());
  }
  [[nodiscard]] GpuAllReduce& reducer() { return reducer_; }
  void write(unsigned worker, GradientBuffer buffer, const std::vector<float>& values) {
    const FakeGpu::Stream stream = streams_[worker];
    gpu_.wait(stream, buffer.free);
    gpu_.kernel_writes(stream, bytes_of(buffer.memory), values.size() * sizeof(float));
    fill(buffer, values);
    gpu_.record(buffer.written, stream);
  }
  [[nodiscard]] std::span<const float> read(int bucket) {
    const auto sums = reducer_.reduced(bucket);
    gpu_.wait(reader_, reducer_.whole());
    gpu_.kernel_reads(reader_, bytes_of(sums.data()), sums.size_bytes());
    return sums;
  }
  void have_read() { reducer_.release(reader_); }
  [[nodiscard]] std::size_t max_bytes() const { return gpu_.max_bytes(); }

 private:
  FakeGpu gpu_;
  GpuAllReduce reducer_;
  FakeGpu::Stream reader_;
  std::vector<FakeGpu::Stream> streams_;
};

TEST(GpuAllReduce, HasTheTreesBitsAndTheFormulasBytesInAnyWay) {
  for (const unsigned seed : seeds(kGpuSeeds)) {
    const Case c = random_case(seed, 1, 5);
    ASSERT_EQ(wrong<FakeSide>(c, expected_of(c), kGpuOptions), "")
        << "seed " << seed << ": " << c.text() << "\n  " << rerun(seed, "comm_test");
  }
}

TEST(GpuAllReduce, LeavesTheSumsOfScatteredBucketsWithTheirOwners) {
  for (const unsigned seed : seeds(kGpuSeeds)) {
    Case c = random_case(seed, 2, 5);
    std::mt19937 random(seed + 1);
    for (auto& bucket : c.buckets.buckets) bucket.scattered = random() % 4 != 0;
    run_in_threads(
        c.ranks,
        [&](Communicator& communicator) {
          FakeSide side(communicator, c, kGpuOptions);
          const int rank = communicator.rank();
          for (std::size_t s = 0; s < c.assignments.size(); ++s) {
            side.reducer().begin_step(c.step(s), c.assignments[s]);
            compute(side, c, c.step(s), c.assignments[s].micro_batches_of_rank[static_cast<std::size_t>(rank)],
                    c.order);
            side.reducer().finish();
            for (int b = 0; b < c.buckets.count(); ++b) {
              const auto found = side.read(b);
              std::vector<float> expected = tree_sum(c.step(s), c.buckets.micro_batches, b, c.buckets.at(b).elements);
              if (c.buckets.at(b).scattered) {
                std::vector<float> own;
                for (const Slice& slice : slices_of(c.buckets, b, c.ranks)) {
                  if (slice.owner != rank) continue;
                  own.assign(expected.begin() + slice.first, expected.begin() + slice.first + slice.size);
                  EXPECT_EQ(side.reducer().sum_at(b, slice.first), found.data());
                }
                expected = std::move(own);
              }
              EXPECT_EQ(std::vector<float>(found.begin(), found.end()), expected)
                  << "rank " << rank << ", bucket " << b << ", seed " << seed << ": " << c.text() << "\n  "
                  << rerun(seed, "comm_test");
            }
            side.have_read();
          }
        },
        c.hosts);
  }
}

TEST(GpuAllReduce, NotExactIsTheSumAllTheSame) {
  Case c;
  c.buckets = buckets_of({5000, 70}, 4);
  c.ranks = 3;
  c.workers = 2;
  const MicroBatchAssignment assignment =
      place_micro_batches(std::vector<int>{0, 3, 1});  // a rank without micro-batches gives zeros
  run_in_threads(3, [&](Communicator& communicator) {
    FakeSide side(communicator, c, {.exact = false, .timeout = 60s});
    for (const std::uint64_t step : {5U, 6U}) {
      side.reducer().begin_step(step, assignment);
      compute(side, c, step, assignment.micro_batches_of_rank[static_cast<std::size_t>(communicator.rank())], 1);
      side.reducer().finish();
      for (int b = 0; b < 2; ++b) {
        const auto expected = tree_sum(step, 4, b, c.buckets.at(b).elements);
        const auto found = side.read(b);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4);
      }
      side.have_read();
    }
  });
}

TEST(GpuAllReduce, EndsWhenAPeerIsGone) {
  Case c;
  c.buckets = buckets_of({5000}, 2);
  c.ranks = 2;
  const MicroBatchAssignment assignment = place_micro_batches(std::vector<int>{1, 1});
  bool ended = false;
  EXPECT_THROW(run_in_threads(2,
                              [&](Communicator& communicator) {
                                FakeSide side(communicator, c, kGpuOptions);
                                side.reducer().begin_step(5, assignment);
                                if (communicator.rank() == 1) throw Error(ExitCode::internal, "gone");
                                compute(side, c, 5, assignment.micro_batches_of_rank[0], 1);
                                try {
                                  side.reducer().finish();
                                } catch (const Error& error) {
                                  ended = error.code() == ExitCode::infrastructure;
                                  throw;
                                }
                              }),
               Error);
  EXPECT_TRUE(ended);
}

/// A step of two ranks in which rank 0's messages go wrong: how it ends on rank 0.
struct FaultyStep {
  std::shared_ptr<TransportFault> fault = std::make_shared<TransportFault>();
  std::string message;  ///< what finish() threw
  ExitCode code = ExitCode::done;
  double seconds = 0;      ///< that finish() took
  Activity activity;       ///< by the flight recorder, afterwards
  int aborts_before = -1;  ///< when before_abort was called

  void run(std::chrono::milliseconds timeout, bool peer_goes) {
    Case c;
    c.buckets = buckets_of({5000, 70}, 2);
    const MicroBatchAssignment assignment = place_micro_batches(std::vector<int>{1, 1});
    fault->step = 5;
    const auto body = [&](Communicator& communicator) {
      const bool faulty = communicator.rank() == 0;
      FakeSide side(communicator, c, {.timeout = timeout}, faulty ? fault : nullptr);
      if (faulty) side.reducer().before_abort([this] { aborts_before = fault->aborts; });
      side.reducer().begin_step(5, assignment);
      compute(side, c, 5, assignment.micro_batches_of_rank[static_cast<std::size_t>(communicator.rank())], 1);
      if (!faulty) return finish_there(side.reducer(), peer_goes);
      const auto start = Clock::now();
      try {
        side.reducer().finish();
      } catch (const Error& error) {
        message = error.what();
        code = error.code();
      }
      seconds = seconds_since(start);
      activity = recorder_of(communicator)->activity();
    };
    try {
      run_in_threads(2, body);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the peer's, which was asked for
    }
  }

 private:
  static void finish_there(GpuAllReduce& reducer, bool goes) {
    reducer.finish();
    if (goes) throw Error(ExitCode::internal, "gone");
  }
};

TEST(GpuAllReduce, AGpuThatDoesNotGetDoneEndsAtTheDeadline) {
  FaultyStep step;
  step.run(200ms, false);
  EXPECT_EQ(std::regex_replace(step.message, std::regex("waited [0-9]+\\.[0-9] s"), "waited some s"),
            "rank 0 on host a: waited some s for the other ranks in 'reduce' of step 5: slices of gradients have not "
            "come to its GPU; look at that rank's log: it ended, hangs or is much slower than this one (then raise "
            "job.timeout)");
  EXPECT_EQ(step.code, ExitCode::infrastructure);
  EXPECT_GE(step.seconds, 0.2);
  EXPECT_EQ(step.aborts_before, 0) << "what is told before an abort";
  EXPECT_EQ(step.fault->aborts, 1);
  EXPECT_GT(step.fault->checks, 1);
  EXPECT_STREQ(step.fault->asked.name, "reduce");
  EXPECT_EQ(step.fault->asked.step, 5U);
  EXPECT_STREQ(step.activity.name, "reduce");
  EXPECT_EQ(step.activity.step, 5U);
  EXPECT_EQ(step.activity.peer, -1);
  EXPECT_EQ(step.activity.missing, "slices of gradients on GPUs");
}

TEST(GpuAllReduce, WhatMessagesFindOutEndsTheWaitAtOnce) {
  FaultyStep step;
  step.fault->found = "node7, rank 0, GPU 0, step 5: reduce failed with 6: a remote process exited";
  step.run(60s, false);
  EXPECT_EQ(step.message, step.fault->found);
  EXPECT_EQ(step.code, ExitCode::infrastructure);
  EXPECT_LT(step.seconds, 30);
  EXPECT_EQ(step.aborts_before, 0) << "what is told before an abort";
  EXPECT_EQ(step.fault->aborts, 1);
  EXPECT_EQ(step.fault->checks, 1);
  EXPECT_STREQ(step.activity.name, "reduce");
}

TEST(GpuAllReduce, APeerThatGoesEndsTheWaitForTheGpu) {
  FaultyStep step;
  step.run(60s, true);
  EXPECT_EQ(step.message, "rank 0 (host a): rank 1 (host a) ended with an error");
  EXPECT_EQ(step.code, ExitCode::infrastructure);
  EXPECT_LT(step.seconds, 30);
  EXPECT_EQ(step.aborts_before, 0) << "what is told before an abort";
  EXPECT_EQ(step.fault->aborts, 1);
}

TEST(GpuAllReduce, NeedsNoMoreMemoryThanWasCountedWhileSharesMove) {
  for (const int ranks : {2, 5}) {
    for (const int workers : {1, 2, 3}) {
      Case c;
      constexpr std::size_t kBuckets = 100;  // the receive buffers of one are small compared with the sums
      c.buckets = buckets_of(std::vector<std::int64_t>(kBuckets, 60), 32);
      c.ranks = ranks;
      c.workers = workers;
      std::vector<std::vector<int>> all = {comm::equal_counts(32, ranks)};
      for (const int first : {16, 15, 7, 1, 31, 30}) {  // micro-batches that the other ranks do not have
        all.push_back(comm::equal_counts(32 - first, ranks - 1));
        all.back().insert(all.back().begin(), first);
      }
      run_in_threads(ranks, [&](Communicator& communicator) {
        FakeSide side(communicator, c, kGpuOptions);
        const auto rank = static_cast<std::size_t>(communicator.rank());
        MicroBatchAssignment assignment;
        std::size_t max_micro_batches = 0;
        for (std::size_t s = 0; s < all.size(); ++s) {
          assignment = place_micro_batches(all[s], assignment, communicator.topology().host_of);
          const auto& mine = assignment.micro_batches_of_rank[rank];
          max_micro_batches = std::max(max_micro_batches, mine.size());
          side.reducer().begin_step(s, assignment);
          compute(side, c, s, mine, static_cast<unsigned>(s + rank));
          side.reducer().finish();
          (void)side.read(0);
          side.have_read();
          EXPECT_LE(side.max_bytes(),
                    GpuAllReduce::bytes(c.buckets, static_cast<int>(max_micro_batches), ranks, workers))
              << "rank " << rank << " of " << ranks << ", " << workers << " workers, step " << s;
        }
      });
    }
  }
}

TEST(GpuAllReduce, NeedsMemoryForRootsMicroBatchesAndWaitingSums) {
  EXPECT_EQ(GpuAllReduce::bytes(buckets_of({100, 28}, 1), 1, 1, 2), 128U * 4);  // only the root
  // and buffers for what others send
  EXPECT_EQ(GpuAllReduce::bytes(buckets_of({100, 28}, 2), 1, 2, 1), (2 * 128 + 2 * 200) * 4U);
  EXPECT_EQ(GpuAllReduce::bytes(buckets_of({128}, 8), 8, 1, 1),
            5U * 128 * 4);  // root, a micro-batch, a sum for each level
}

}  // namespace
}  // namespace lockstep::comm
