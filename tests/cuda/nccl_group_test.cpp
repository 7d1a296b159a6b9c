// NcclGroup with a NCCL that follows a script: how it starts, what it calls in which order, and how it ends if
// something is late or fails.
#include "comm/transport/nccl_group.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <functional>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "comm/reduce_run.hpp"
#include "core/spans.hpp"
#include "cuda/host_gpu.hpp"
#include "cuda/refusal.hpp"
#include "cuda/scripted_nccl.hpp"
#include "device/cuda/cudnn_plans.hpp"
#include "device/cuda/gpu_stream.hpp"
#include "lockstep/error.hpp"
#include "seeds.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Strings = std::vector<std::string>;

constexpr double kSoon = 30;  ///< seconds, on a busy machine; deadlines that must not be reached are longer

device::GpuPlace place_of(int rank) {
  return {.host = "node7", .rank = rank, .gpu = fmt::format("GPU {}", rank)};
}

/// The host, with streams whose handles are never used.
class StreamGpu final : public device::HostGpu {
 public:
  GpuStream* kernel_stream(Stream /*stream*/) override { return &stream_; }

 private:
  device::CudnnPlans plans_;
  GpuStream stream_{nullptr, {}, plans_};
};

class NcclGroupTest : public testing::Test {
 protected:
  using Body = std::function<void(Communicator&, NcclGroup&)>;

  /// Each rank makes a group and calls `body` with it: returns for each rank the message with which it ended, or "".
  Strings run(int size, milliseconds timeout, const Body& body = {}) {
    Strings ends(static_cast<std::size_t>(size));
    run_in_threads(size, [&](Communicator& ranks) {
      StreamGpu gpu;
      try {
        NcclGroup group(ranks, gpu, place_of(ranks.rank()), timeout);
        if (body) body(ranks, group);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::infrastructure);
        ends[static_cast<std::size_t>(ranks.rank())] = error.what();
      }
    });
    return ends;
  }
  /// On all ranks, the failure of one rank.
  static Strings failed(int size, int rank, const std::string& what) {
    const std::string whole = place_of(rank).text() + ": " + what;
    Strings ends;
    for (int r = 0; r < size; ++r) {
      ends.push_back(r == rank
                         ? whole
                         : fmt::format("{}: expected NCCL to start on all ranks, found that it failed on rank {}: {}",
                                       place_of(r).text(), rank, whole));
    }
    return ends;
  }
  void TearDown() override {
    EXPECT_EQ(nccl.mistakes(), Strings{});
    EXPECT_EQ(nccl.alive(), 0U);
  }

  ScriptedNccl nccl;
};

std::vector<float> numbers(int from, int count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(from + i);
  return values;
}

TEST_F(NcclGroupTest, StartsWhenAllAreReadyAndEndsInOrder) {
  nccl.script(0, "ncclCommInitRankConfig", {ncclInProgress});
  nccl.script(2, "ncclCommInitRankConfig", {ncclInProgress});
  nccl.script(2, "state", {ncclInProgress, ncclInProgress, ncclInProgress, ncclSuccess, ncclInProgress, ncclSuccess});
  nccl.script(1, "ncclCommFinalize", {ncclInProgress});
  EXPECT_EQ(run(3, 60s), Strings(3));
  EXPECT_EQ(nccl.calls(0),
            (Strings{"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommFinalize", "ncclCommDestroy"}));
  for (const int rank : {1, 2}) {
    EXPECT_EQ(nccl.calls(rank), (Strings{"ncclCommInitRankConfig", "ncclCommFinalize", "ncclCommDestroy"}));
  }
}

TEST_F(NcclGroupTest, AFailureOfAnyRankEndsAllAtOnce) {
  constexpr int kSize = 5;
  for (int broken = 0; broken < kSize; ++broken) {
    for (const bool later : {false, true}) {  // found by the call, or while it is in progress
      ScriptedNccl inner;                     // replaces the other one
      for (int rank = 0; rank < kSize; ++rank) inner.script(rank, "state", {ncclInProgress});
      if (later) {
        inner.script(broken, "state", {ncclInProgress, ncclInProgress, ncclSystemError});
      } else {
        inner.script(broken, "ncclCommInitRankConfig", {ncclSystemError});
      }
      const auto start = Clock::now();
      EXPECT_EQ(run(kSize, 600s),
                failed(kSize, broken, "ncclCommInitRankConfig failed with 2: an error (as the script says)"));
      EXPECT_LT(seconds_since(start), kSoon);
      for (int rank = 0; rank < kSize; ++rank) {
        EXPECT_EQ(inner.count(rank, "ncclCommAbort"), rank == broken && !later ? 0 : 1) << rank;
        EXPECT_EQ(inner.count(rank, "ncclCommFinalize") + inner.count(rank, "ncclCommDestroy"), 0) << rank;
      }
      EXPECT_EQ(inner.mistakes(), Strings{});
      EXPECT_EQ(inner.alive(), 0U);
    }
  }
}

TEST_F(NcclGroupTest, WithoutAnIdNoRankStarts) {
  nccl.script(0, "ncclGetUniqueId", {ncclSystemError});
  const auto start = Clock::now();
  EXPECT_EQ(run(3, 600s), failed(3, 0, "ncclGetUniqueId failed with 2: an error (as the script says)"));
  EXPECT_LT(seconds_since(start), kSoon);
  EXPECT_EQ(nccl.calls(0), Strings{"ncclGetUniqueId"});
  for (const int rank : {1, 2}) EXPECT_EQ(nccl.calls(rank), Strings{});
}

TEST_F(NcclGroupTest, ALateRankEndsAllAtTheDeadline) {
  nccl.script(1, "state", {ncclInProgress});  // the others are ready
  EXPECT_EQ(run(3, 2s), failed(3, 1,
                               "ncclCommInitRankConfig is not done after 2 s; a rank is gone or late, or NCCL's "
                               "network settings do not fit (NCCL_DEBUG=INFO tells more)"));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(nccl.count(rank, "ncclCommAbort"), 1);
    EXPECT_EQ(nccl.count(rank, "ncclCommDestroy"), 0);
  }
}

TEST_F(NcclGroupTest, AnErrorWhileTheGpuIsWaitedForNamesTheStep) {
  nccl.script(0, "state", {ncclSuccess, ncclInProgress, ncclRemoteError});
  const auto ends = run(1, 60s, [&](Communicator&, NcclGroup& group) {
    const Operation operation{"reduce", 7, 60s};
    group.check(operation);  // in progress is not an error
    group.enter(7);
    const std::string message = refusal([&] { group.check(operation); });
    EXPECT_EQ(message, "node7, rank 0, GPU 0, step 7: reduce failed with 6: a remote error (as the script says)");
    group.abort();
    group.abort();
    EXPECT_EQ(refusal([&] { group.check(operation); }),
              "node7, rank 0, GPU 0, step 7: reduce after the group was aborted");
    float value = 0;
    EXPECT_EQ(refusal([&] { group.all_reduce_sum(&value, 1, {}); }),
              "node7, rank 0, GPU 0, step 7: the all-reduce after the group was aborted");
  });
  EXPECT_EQ(ends, Strings(1));
  EXPECT_EQ(nccl.calls(0), (Strings{"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommAbort"}));
}

TEST_F(NcclGroupTest, AGroupOfCallsMayTakeItsTime) {
  nccl.script(0, "ncclGroupEnd", {ncclInProgress});
  nccl.script(0, "ncclAllReduce", {ncclInProgress});
  nccl.script(0, "state", {ncclSuccess, ncclInProgress, ncclInProgress, ncclSuccess});
  const auto ends = run(1, 60s, [&](Communicator&, NcclGroup& group) {
    float value = 3;
    group.all_reduce_sum(&value, 1, {});
    group.all_reduce_sum(&value, 1, {});  // not before NCCL has accepted the first
    EXPECT_EQ(value, 3);
  });
  EXPECT_EQ(ends, Strings(1));
}

TEST_F(NcclGroupTest, AGroupOfCallsThatIsNotTakenEndsAtTheDeadline) {
  nccl.script(0, "ncclGroupEnd", {ncclInProgress});
  nccl.script(0, "state", {ncclSuccess, ncclInProgress});
  const auto ends = run(1, 200ms, [&](Communicator&, NcclGroup& group) {
    group.enter(4);
    float value = 3;
    EXPECT_EQ(refusal([&] { group.all_reduce_sum(&value, 1, {}); }),
              "node7, rank 0, GPU 0, step 4: the all-reduce is not done after 0.2 s; a rank is gone or late, or NCCL's "
              "network settings do not fit (NCCL_DEBUG=INFO tells more)");
    group.abort();
  });
  EXPECT_EQ(ends, Strings(1));
  EXPECT_EQ(nccl.count(0, "ncclCommAbort"), 1);
}

TEST_F(NcclGroupTest, AGroupOfCallsThatFailsIsClosed) {
  nccl.script(0, "ncclGroupEnd", {ncclSystemError, ncclSuccess});
  nccl.script(0, "ncclAllReduce", {ncclSuccess, ncclInvalidArgument, ncclSuccess});
  const auto ends = run(1, 60s, [&](Communicator&, NcclGroup& group) {
    group.enter(4);
    float value = 3;
    const auto sum = [&] { group.all_reduce_sum(&value, 1, {}); };
    EXPECT_EQ(refusal(sum), "node7, rank 0, GPU 0, step 4: ncclGroupEnd failed with 2: an error (as the script says)");
    EXPECT_EQ(refusal(sum), "node7, rank 0, GPU 0, step 4: ncclAllReduce failed with 4: an error (as the script says)");
    EXPECT_EQ(refusal(sum), "");  // not inside the group before
  });
  EXPECT_EQ(ends, Strings(1));
}

TEST_F(NcclGroupTest, SlicesOfOneSizeAreGatheredByOneCall) {
  const auto ends = run(3, 60s, [&](Communicator& ranks, NcclGroup& group) {
    std::vector<float> bucket(12, -1);
    const auto own = numbers(100 * ranks.rank(), 4);
    std::copy(own.begin(), own.end(), bucket.begin() + static_cast<std::ptrdiff_t>(4) * ranks.rank());
    group.all_gather(bucket.data(), std::vector<std::int64_t>{0, 4, 8, 12}, {});
    EXPECT_EQ(bucket, (std::vector<float>{0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203}));
  });
  EXPECT_EQ(ends, Strings(3));
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(nccl.collectives(rank), Strings{"ncclAllGather 4"});
}

TEST_F(NcclGroupTest, SlicesOfSeveralSizesAreOneGroupOfBroadcasts) {
  const std::vector<std::int64_t> bounds{0, 3, 3, 8, 9};
  const auto ends = run(4, 60s, [&](Communicator& ranks, NcclGroup& group) {
    std::vector<float> bucket(9, -1);
    const auto r = static_cast<std::size_t>(ranks.rank());
    for (std::int64_t i = bounds[r]; i < bounds[r + 1]; ++i)
      bucket[static_cast<std::size_t>(i)] = static_cast<float>(i);
    group.all_gather(bucket.data(), bounds, {});
    EXPECT_EQ(bucket, numbers(0, 9));
  });
  EXPECT_EQ(ends, Strings(4));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(nccl.collectives(rank),
              (Strings{"ncclBroadcast 3 from 0", "ncclBroadcast 5 from 2", "ncclBroadcast 1 from 3"}));
    EXPECT_EQ(nccl.count(rank, "ncclGroupEnd"), 1);
  }
}

TEST_F(NcclGroupTest, WhatOwnersHaveGoesToAllInOneGroup) {
  const auto ends = run(3, 60s, [&](Communicator& ranks, NcclGroup& group) {
    std::vector<float> first(4, -1), second(3, -1);
    if (ranks.rank() == 2) first = numbers(20, 4);
    if (ranks.rank() == 1) second = numbers(10, 3);
    const std::vector<GpuTransport::Owned> owned{{2, first.data(), 4}, {1, second.data(), 3}};
    group.broadcast(owned, {});
    group.broadcast({}, {});  // nothing to do: NCCL is not called
    EXPECT_EQ(first, numbers(20, 4));
    EXPECT_EQ(second, numbers(10, 3));
  });
  EXPECT_EQ(ends, Strings(3));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(nccl.collectives(rank), (Strings{"ncclBroadcast 4 from 2", "ncclBroadcast 3 from 1"}));
    EXPECT_EQ(nccl.count(rank, "ncclGroupEnd"), 1);
  }
}

TEST_F(NcclGroupTest, MessagesBothWaysAreOneGroup) {
  const auto ends = run(2, 60s, [&](Communicator& ranks, NcclGroup& group) {
    const int other = 1 - ranks.rank();
    auto first = numbers(100 * ranks.rank(), 3), second = numbers(100 * ranks.rank() + 50, 2);
    std::vector<float> got(5, -1);
    using Message = GpuTransport::Message;
    const std::vector<Message> sends{{other, first.data(), 3}, {other, second.data(), 2}};
    const std::vector<Message> receives{{other, got.data(), 3}, {other, got.data() + 3, 2}};
    group.send_receive(sends, receives, {});
    group.send_receive({}, {}, {});  // nothing to do: NCCL is not called
    auto expected = numbers(100 * other, 3);
    for (const float value : numbers(100 * other + 50, 2)) expected.push_back(value);
    EXPECT_EQ(got, expected);
  });
  EXPECT_EQ(ends, Strings(2));
  EXPECT_EQ(nccl.calls(1), (Strings{"ncclCommInitRankConfig", "ncclSend 3 to 0", "ncclSend 2 to 0", "ncclRecv 3 from 0",
                                    "ncclRecv 2 from 0", "ncclGroupEnd", "ncclCommFinalize", "ncclCommDestroy"}));
}

TEST_F(NcclGroupTest, AnEndThatOthersDoNotShareIsAnAbort) {
  nccl.script(0, "state", {ncclSuccess, ncclInProgress});
  nccl.script(1, "ncclCommFinalize", {ncclRemoteError});
  EXPECT_EQ(run(2, 60s), Strings(2));
  for (const int rank : {0, 1}) {
    EXPECT_EQ(nccl.count(rank, "ncclCommAbort"), 1);
    EXPECT_EQ(nccl.count(rank, "ncclCommDestroy"), 0);
  }
}

/// A rank whose gradients are reduced over NCCL.
class NcclSide {
 public:
  NcclSide(Communicator& ranks, const Case& c, ReducerOptions options)
      : reducer_(ranks, c.buckets, options, gpu_,
                 ranks.size() == 1 ? nullptr : std::make_unique<NcclGroup>(ranks, gpu_, place_of(ranks.rank()), 60s)) {}
  [[nodiscard]] GpuAllReduce& reducer() { return reducer_; }
  void write(unsigned /*worker*/, GradientBuffer buffer, const std::vector<float>& values) { fill(buffer, values); }
  [[nodiscard]] std::span<const float> read(int bucket) { return reducer_.reduced(bucket); }
  void have_read() { reducer_.release({}); }

 private:
  StreamGpu gpu_;
  GpuAllReduce reducer_;
};

TEST(NcclReducer, HasTheTreesBitsAndOneOrderOfCallsOnAllRanks) {
  for (const unsigned seed : seeds(25)) {
    const Case c = random_case(seed, 2, 6);
    for (const bool exact : {true, false}) {
      ScriptedNccl nccl;
      const std::string found = wrong<NcclSide>(c, expected_of(c), {.exact = exact, .timeout = 60s});
      const std::string where = fmt::format("seed {}: {}\n  {}", seed, c.text(), rerun(seed, "cuda_nccl_test"));
      ASSERT_EQ(exact ? found : "", "") << where;  // otherwise the sums are the library's
      ASSERT_EQ(nccl.mistakes(), Strings{}) << where;
      EXPECT_EQ(nccl.alive(), 0U);
      for (int rank = 1; rank < c.ranks; ++rank) ASSERT_EQ(nccl.collectives(rank), nccl.collectives(0)) << where;
    }
  }
}

}  // namespace
}  // namespace lockstep::comm
