// Scattered buckets that are added wave by wave on GPUs: the sums' bits, the order of every access on fakes that check
// it, and the memory, which is as large as bytes() says and does not grow with the differences between ranks.
#include "comm/reduce/gpu_streamed_sums.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <numeric>
#include <regex>
#include <set>
#include <thread>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "comm/reduce_run.hpp"
#include "cuda/checked_transport.hpp"
#include "device/fake_gpu.hpp"
#include "lockstep/error.hpp"
#include "seeds.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using device::FakeGpu;

constexpr unsigned kStreamSeeds = 60;

/// A rank on a fake, whose workers take micro-batches in their order, and write the buckets of each in order.
class StreamingRank {
 public:
  StreamingRank(Communicator& communicator, const GradientBuckets& buckets, const ReducerOptions& options)
      : buckets_(buckets),
        reducer_(communicator, buckets, options, gpu_,
                 std::make_unique<HostTransport>(communicator, 60s, touches(gpu_))),
        reader_(gpu_.make_stream()) {
    for (int w = 0; w < options.workers; ++w) streams_.push_back(gpu_.make_stream());
  }
  [[nodiscard]] GpuAllReduce& reducer() { return reducer_; }
  [[nodiscard]] std::size_t max_bytes() const { return gpu_.max_bytes(); }
  [[nodiscard]] std::vector<float> read(int bucket) {
    const auto sums = reducer_.reduced(bucket);
    gpu_.wait(reader_, reducer_.whole());
    gpu_.kernel_reads(reader_, device::bytes_of(sums.data()), sums.size_bytes());
    return {sums.begin(), sums.end()};
  }
  void compute(std::uint64_t step, const std::vector<int>& micro_batches) {
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (std::size_t w = 0; w < streams_.size(); ++w) {
      threads.emplace_back([&, w] {
        for (std::size_t i = next++; i < micro_batches.size(); i = next++) compute(w, step, micro_batches[i]);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  void finish() { reducer_.finish(); }
  void release() { reducer_.release(reader_); }

  /// Buckets are opened `ahead` of the one that is closed next.
  int ahead = 0;
  /// Called with each bucket that is written.
  std::function<void(const GradientBuffer&, int bucket)> written = [](const GradientBuffer&, int) {};

 private:
  void compute(std::size_t worker, std::uint64_t step, int micro_batch) {
    std::vector<GradientBuffer> open;
    for (int b = 0; b < buckets_.count(); ++b) {
      while (std::ssize(open) < std::min(buckets_.count(), b + 1 + ahead)) {
        open.push_back(reducer_.buffer(micro_batch, static_cast<int>(open.size())));
        gpu_.wait(streams_[worker], open.back().free);
      }
      const auto values = gradient(step, micro_batch, b, buckets_.at(b).elements);
      const GradientBuffer& buffer = open[static_cast<std::size_t>(b)];
      gpu_.kernel_writes(streams_[worker], device::bytes_of(buffer.memory), values.size() * sizeof(float));
      fill(buffer, values);
      gpu_.record(buffer.written, streams_[worker]);
      written(buffer, b);
      reducer_.ready(micro_batch, b);
    }
  }

  const GradientBuckets& buckets_;
  FakeGpu gpu_;
  GpuAllReduce reducer_;
  FakeGpu::Stream reader_;
  std::vector<FakeGpu::Stream> streams_;
};

struct StreamedCase {
  Case c;
  std::vector<int> workers;  ///< by rank
  int ahead = 0;
  std::int64_t open = 0, more = 0;
};

StreamedCase streamed_case(unsigned seed) {
  StreamedCase s{random_case(seed, 2, 6), {}, 0, 0, 0};
  std::mt19937 random(seed + 1);
  for (auto& bucket : s.c.buckets.buckets) bucket.scattered = random() % 5 != 0;
  for (int r = 0; r < s.c.ranks; ++r) s.workers.push_back(between(random, 1, 3));
  s.ahead = between(random, 0, 2);
  for (int b = 0; b < s.c.buckets.count(); ++b) {
    std::int64_t open = 0;
    for (int next = b; next <= std::min(b + s.ahead, s.c.buckets.count() - 1); ++next)
      open += s.c.buckets.at(next).elements;
    s.open = std::max(s.open, open);
  }
  s.more = 64 * s.c.buckets.count() + (random() % 2 == 0 ? 0 : 20'000);
  for (MicroBatchAssignment& assignment : s.c.assignments) {
    if (random() % 2 == 0) assignment = interleave_micro_batches(assignment, s.c.hosts);
    assignment.waves = even_waves(assignment, s.workers);
  }
  return s;
}

std::vector<float> own_part(const Case& c, std::uint64_t step, int bucket, int rank) {
  std::vector<float> sum = tree_sum(step, c.buckets.micro_batches, bucket, c.buckets.at(bucket).elements);
  if (!c.buckets.at(bucket).scattered) return sum;
  for (const Slice& slice : slices_of(c.buckets, bucket, c.ranks)) {
    if (slice.owner == rank) return {sum.begin() + slice.first, sum.begin() + slice.first + slice.size};
  }
  return {};
}

TEST(GpuStreamedSums, HaveTheTreesBitsAndTheFormulasBytesInAnyWay) {
  for (const unsigned seed : seeds(kStreamSeeds)) {
    const StreamedCase s = streamed_case(seed);
    const Case& c = s.c;
    run_in_threads(
        c.ranks,
        [&](Communicator& communicator) {
          const int rank = communicator.rank();
          const auto r = static_cast<std::size_t>(rank);
          const ReducerOptions options{.timeout = 60s,
                                       .streamed = true,
                                       .workers = s.workers[r],
                                       .open_elements = s.open,
                                       .ahead_elements = s.more};
          StreamingRank side(communicator, c.buckets, options);
          side.ahead = s.ahead;
          const Hosts hosts(communicator.topology());
          PlannedBytes planned;
          std::size_t most = 0;
          for (std::size_t at = 0; at < c.assignments.size(); ++at) {
            const MicroBatchAssignment& assignment = c.assignments[at];
            side.reducer().begin_step(c.step(at), assignment);
            side.compute(c.step(at), assignment.micro_batches_of_rank[r]);
            side.finish();
            for (int b = 0; b < c.buckets.count(); ++b) {
              EXPECT_EQ(side.read(b), own_part(c, c.step(at), b, rank))
                  << "rank " << rank << ", step " << at << ", bucket " << b << ", seed " << seed << ": " << c.text()
                  << "\n  " << rerun(seed, "comm_test");
            }
            side.release();
            const PlannedBytes bytes = bytes_of(reduce_plan(assignment, hosts, c.buckets, rank, true), hosts);
            planned.inside_host += bytes.inside_host;
            planned.between_hosts += bytes.between_hosts;
            most = std::max(most, GpuAllReduce::bytes({c.buckets, assignment, hosts, rank, options}));
            if (at == 0) {
              EXPECT_LE(side.max_bytes(), most + 64) << "seed " << seed << ": " << c.text();
            }
          }
          const auto sent = side.reducer().statistics();
          const bool streams = std::any_of(c.buckets.buckets.begin(), c.buckets.buckets.end(),
                                           [](const auto& bucket) { return bucket.scattered; });
          if (streams) {
            EXPECT_EQ(sent.shared_memory_bytes, planned.inside_host) << "seed " << seed << ": " << c.text();
            EXPECT_EQ(sent.network_bytes, planned.between_hosts) << "seed " << seed << ": " << c.text();
          }
        },
        c.hosts);
  }
}

/// Eight buckets of two chunks, and 64 micro-batches in turn from two ranks of one host.
struct SlowPeer {
  static constexpr int kWorkers = 2;
  static constexpr std::int64_t kUnit = 2 * kChunkElements;
  GradientBuckets buckets;
  Hosts hosts{Topology{.host_of = {0, 0}, .host_names = {"a"}}};
  MicroBatchAssignment assignment =
      interleave_micro_batches(place_micro_batches(equal_counts(64, 2)), std::vector<int>{0, 0});
  // A ring has room for three buckets: one that is open, and two that wait.
  ReducerOptions options{
      .timeout = 60s, .streamed = true, .workers = kWorkers, .open_elements = kUnit, .ahead_elements = 2 * kUnit};
  SlowPeer() {
    buckets.micro_batches = 64;
    for (int b = 0; b < 8; ++b) {
      buckets.buckets.emplace_back().append(kUnit);
      buckets.buckets.back().scattered = true;
    }
    assignment.waves = even_waves(assignment, std::vector<int>(2, kWorkers));
  }
};

// Rank 1 begins when rank 0 cannot go on without it: each worker of rank 0 has then written as much as is in its ring.
TEST(GpuStreamedSums, MemoryIsThatOfRingsAndSlicesThoughARankIsSlow) {
  const SlowPeer s;
  const std::size_t unit = static_cast<std::size_t>(SlowPeer::kUnit) * sizeof(float), slices = 8 * unit / 2;
  std::atomic<int> written{0};
  run_in_threads(2, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    StreamingRank side(communicator, s.buckets, s.options);
    if (rank == 0) side.written = [&](const GradientBuffer&, int) { ++written; };
    const auto& mine = s.assignment.micro_batches_of_rank[static_cast<std::size_t>(rank)];
    for (const std::uint64_t step : {5U, 6U}) {
      side.reducer().begin_step(step, s.assignment);
      while (rank == 1 && step == 5 && written < 3 * SlowPeer::kWorkers) std::this_thread::yield();
      side.compute(step, mine);
      side.finish();
      side.release();
    }
    const std::size_t bytes = GpuAllReduce::bytes({s.buckets, s.assignment, s.hosts, rank, s.options});
    EXPECT_EQ(side.max_bytes(), bytes);
    // Rings; gradients that arrive at once, half of each bucket; the sum, and sums that wait: 4 of 64 micro-batches
    // come in a wave.
    EXPECT_EQ(bytes, SlowPeer::kWorkers * 3 * unit + SlowPeer::kWorkers * unit / 2 + slices + 3 * slices);
    EXPECT_LT(2 * bytes, GpuAllReduce::bytes(s.buckets, 32, 2, SlowPeer::kWorkers));
  });
}

TEST(GpuStreamedSums, EachMicroBatchHasTheSameAddresses) {
  const SlowPeer s;
  run_in_threads(2, [&](Communicator& communicator) {
    StreamingRank side(communicator, s.buckets, s.options);
    std::mutex mutex;
    std::vector<std::set<float*>> addresses(8);
    side.written = [&](const GradientBuffer& buffer, int bucket) {
      const std::lock_guard lock(mutex);
      addresses[static_cast<std::size_t>(bucket)].insert(buffer.memory);
    };
    side.reducer().begin_step(5, s.assignment);
    side.compute(5, s.assignment.micro_batches_of_rank[static_cast<std::size_t>(communicator.rank())]);
    side.finish();
    side.release();
    for (const auto& of_bucket : addresses) EXPECT_EQ(of_bucket.size(), 2U) << "one in each worker's ring";
  });
}

/// What buffer() of the fourth bucket throws on rank 0 while rank 1 does nothing.
std::string error_without_peer(ReducerOptions options, const std::function<void()>& before) {
  SlowPeer s;
  s.assignment.waves = even_waves(s.assignment, std::vector<int>{1, 1});
  options.streamed = true;
  options.open_elements = s.options.open_elements;
  options.ahead_elements = s.options.ahead_elements;
  std::string message;
  std::atomic<bool> ended{false};
  const auto body = [&](Communicator& communicator) {
    StreamingRank side(communicator, s.buckets, options);
    side.reducer().begin_step(5, s.assignment);
    if (communicator.rank() == 1) {
      while (!ended) std::this_thread::yield();
      throw Error(ExitCode::internal, "gone");
    }
    for (int b = 0; b < 3; ++b) {
      (void)side.reducer().buffer(0, b);
      side.reducer().ready(0, b);
    }
    before();
    try {
      (void)side.reducer().buffer(0, 3);
    } catch (const Error& error) {
      message = error.what();
    }
    ended = true;
  };
  EXPECT_THROW(run_in_threads(2, body), Error);
  return message;
}

TEST(GpuStreamedSums, AWorkerDoesNotWaitForEverForRoom) {
  EXPECT_EQ(
      std::regex_replace(error_without_peer({.timeout = 200ms}, [] {}), std::regex("waited [0-9]+\\.[0-9] s"),
                         "waited some s"),
      "rank 0 on host a: waited some s for the other ranks in 'reduce' of step 5: earlier gradients have not been "
      "sent; look at that rank's log: it ended, hangs or is much slower than this one (then raise job.timeout)");
}

TEST(GpuStreamedSums, AWorkerDoesNotWaitForRoomAfterAnotherHasFailed) {
  std::atomic<bool> failed{false};
  EXPECT_EQ(error_without_peer({.timeout = 60s, .stop = &failed}, [&] { failed = true; }),
            "another worker of this rank has failed");
}

TEST(RingLayout, BucketsThatAreOpenOrWaitLieApart) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    GradientBuckets buckets;
    std::int64_t largest = 0;
    for (int b = between(random, 1, 12); b > 0; --b) {
      buckets.buckets.emplace_back().elements = 64 * between(random, 1, 30);
      buckets.buckets.back().scattered = true;
      largest = std::max(largest, buckets.buckets.back().elements);
    }
    const std::int64_t open = 64 * between(random, 0, 60), ahead = 64 * between(random, 0, 20);
    const RingLayout layout = ring_layout(buckets, open, ahead);
    EXPECT_LE(layout.elements, 2 * (std::max(open, largest) + ahead + largest));
    const auto end = [&](std::size_t b) { return layout.offsets[b] + buckets.buckets[b].elements; };
    for (std::size_t first = 0; first < buckets.buckets.size(); ++first) {
      std::int64_t together = buckets.buckets[first].elements;
      for (std::size_t next = first + 1; next < buckets.buckets.size(); ++next) {
        together += buckets.buckets[next].elements;
        const bool apart = end(first) <= layout.offsets[next] || end(next) <= layout.offsets[first];
        EXPECT_TRUE(apart || together > std::max(open, buckets.buckets[next].elements) + ahead);
        EXPECT_TRUE(apart || layout.earlier[next] >= static_cast<int>(first));
        EXPECT_TRUE(apart || layout.same[first] >= static_cast<int>(next));
      }
    }
  }
}

TEST(Waves, OfARankWithFewMicroBatchesAreSpread) {
  const MicroBatchAssignment assignment{{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9}, {}, {10, 11, 12}}};
  EXPECT_EQ(count_waves(std::vector{8, 2, 0, 3}, std::vector{1, 1, 1, 2}), 8);
  EXPECT_EQ(even_waves(assignment, std::vector{1, 1, 1, 2}), (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 3, 7, 3, 3, 7}));
}

int kept_sums(int micro_batches, int ranks, int workers) {
  const std::vector<int> hosts(static_cast<std::size_t>(ranks));
  MicroBatchAssignment assignment =
      interleave_micro_batches(place_micro_batches(equal_counts(micro_batches, ranks)), hosts);
  assignment.waves = even_waves(assignment, std::vector<int>(static_cast<std::size_t>(ranks), workers));
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const Tree tree(micro_batches);
  return plan_waves(tree, {tree.root()}, leaves_of_waves(assignment, all)).kept;
}

TEST(WaveSums, FewAreKept) {
  EXPECT_EQ(kept_sums(8, 8, 1), 1);   // all neighbours are in one wave
  EXPECT_EQ(kept_sums(64, 8, 1), 3);  // 8 waves: a sum a level above them
  EXPECT_EQ(kept_sums(64, 8, 2), 2);
  EXPECT_EQ(kept_sums(64, 1, 1), 6);
  EXPECT_LE(kept_sums(48, 6, 1), 5);
  EXPECT_LE(kept_sums(60, 7, 2), 8);
}

}  // namespace
}  // namespace lockstep::comm
