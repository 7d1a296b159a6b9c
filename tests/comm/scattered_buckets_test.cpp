// Buckets whose sums stay with the owners of their slices: together the owners have the sum of the tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "comm/reduce/all_reduce_cpu.hpp"
#include "comm/reduce_run.hpp"

namespace lockstep::comm {
namespace {

Case scattered_case(unsigned seed) {
  Case c = random_case(seed, 2, 9);
  std::mt19937 random(seed + 1);
  c.sleeps = random() % 2 == 0;
  c.buckets.spread_owners = random() % 2 == 0;
  for (auto& bucket : c.buckets.buckets) bucket.scattered = random() % 4 != 0;
  return c;
}

/// Copies the sums that this rank may read into those of all ranks.
void take(const GradientReducer& reducer, const Case& c, int rank, std::vector<std::vector<float>>& sums) {
  for (int b = 0; b < c.buckets.count(); ++b) {
    const auto found = reducer.reduced(b);
    for (const Slice& slice : slices_of(c.buckets, b, c.ranks)) {
      if (slice.owner != rank) continue;
      std::copy_n(found.begin() + slice.first, slice.size,
                  sums[static_cast<std::size_t>(b)].begin() + static_cast<std::ptrdiff_t>(slice.first));
    }
  }
}

/// One micro-batch after the other, its buckets in order, as a program computes them; each worker has some of the
/// micro-batches.
void compute_in_order(GradientReducer& reducer, const Case& c, std::uint64_t step,
                      const std::vector<int>& micro_batches, int workers) {
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      for (std::size_t i = static_cast<std::size_t>(w); i < micro_batches.size();
           i += static_cast<std::size_t>(workers)) {
        for (int b = 0; b < c.buckets.count(); ++b) {
          fill(reducer.buffer(micro_batches[i], b), gradient(step, micro_batches[i], b, c.buckets.at(b).elements));
          reducer.ready(micro_batches[i], b);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class ScatteredBuckets : public testing::TestWithParam<bool> {};

TEST_P(ScatteredBuckets, OwnersHaveTheSumOfTheTree) {
  for (unsigned seed = 0; seed < 80; ++seed) {
    const Case c = scattered_case(seed);
    std::mutex mutex;
    std::vector<std::vector<std::vector<float>>> sums(c.assignments.size());  // by step and bucket
    for (auto& of_step : sums) {
      for (const auto& bucket : c.buckets.buckets) {
        of_step.emplace_back(static_cast<std::size_t>(bucket.elements), 0.0F);
      }
    }
    run_in_threads(
        c.ranks,
        [&](Communicator& communicator) {
          const int rank = communicator.rank();
          ReducerOptions options;
          options.streamed = GetParam();
          options.workers = c.workers + rank % 2;  // ranks of one host need not have the same number
          const auto reducer = make_reducer(communicator, c.buckets, options);
          PlannedBytes planned;
          for (std::size_t s = 0; s < c.assignments.size(); ++s) {
            reducer->begin_step(c.step(s), c.assignments[s]);
            const auto& micro_batches = c.assignments[s].micro_batches_of_rank[static_cast<std::size_t>(rank)];
            if (options.streamed) {
              compute_in_order(*reducer, c, c.step(s), micro_batches, options.workers);
            } else {
              compute(*reducer, c, c.step(s), micro_batches,
                      c.order + static_cast<unsigned>(100 * s) + static_cast<unsigned>(rank));
            }
            reducer->finish();  // without scalars, for which all ranks would wait for each other
            const std::lock_guard lock(mutex);
            take(*reducer, c, rank, sums[s]);
            const Hosts hosts(communicator.topology());
            const PlannedBytes bytes =
                bytes_of(reduce_plan(c.assignments[s], hosts, c.buckets, rank, options.streamed), hosts);
            planned.inside_host += bytes.inside_host;
            planned.between_hosts += bytes.between_hosts;
          }
          EXPECT_EQ(reducer->statistics().shared_memory_bytes, planned.inside_host) << c.text();
          EXPECT_EQ(reducer->statistics().network_bytes, planned.between_hosts) << c.text();
        },
        c.hosts);
    for (std::size_t s = 0; s < sums.size(); ++s) {
      for (int b = 0; b < c.buckets.count(); ++b) {
        EXPECT_EQ(sums[s][static_cast<std::size_t>(b)],
                  tree_sum(c.step(s), c.buckets.micro_batches, b, c.buckets.at(b).elements))
            << "step " << s << ", bucket " << b << " of seed " << seed << ": " << c.text();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScatteredBuckets, testing::Bool(),
                         [](const auto& way) { return way.param ? "MicroBatchByMicroBatch" : "RankByRank"; });

// A rank whose peer has not begun computes what the window allows and then waits; the sums of what it has published do
// not pile up with its readers.
TEST(StreamedSums, AFastRankWaitsForASlowOne) {
  GradientBuckets buckets;
  buckets.micro_batches = 64;
  for (int b = 0; b < 4; ++b) {
    buckets.buckets.emplace_back().append(2 * kChunkElements);
    buckets.buckets.back().scattered = true;
  }
  Case c;
  c.buckets = buckets;
  const std::vector<int> hosts = {0, 0};
  const MicroBatchAssignment assignment =
      interleave_micro_batches(place_micro_batches(equal_counts(64, 2), {}, hosts), hosts);
  std::atomic<int> computed{0};
  run_in_threads(
      2,
      [&](Communicator& communicator) {
        ReducerOptions options;
        options.streamed = true;
        const auto reducer = make_reducer(communicator, buckets, options);
        const int rank = communicator.rank();
        reducer->begin_step(1, assignment);
        const auto& mine = assignment.micro_batches_of_rank[static_cast<std::size_t>(rank)];
        for (int seen = -1; rank == 1 && seen != computed;) {  // until rank 0 has no more, or makes no more progress
          seen = computed;
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        for (const int micro_batch : mine) {
          compute_in_order(*reducer, c, 1, {micro_batch}, 1);
          if (rank == 0) ++computed;
        }
        reducer->finish();
        const Hosts all(communicator.topology());
        const auto r = static_cast<std::size_t>(rank);
        const CpuAllReduce::Bytes bytes =
            CpuAllReduce::bytes({.buckets = buckets,
                                 .sums = sum_loads(buckets.micro_batches, assignment, all)[r],
                                 .slices = slice_loads(buckets, all)[r],
                                 .streamed = true,
                                 .streaming = StreamedSums::most_waiting(assignment, all, rank, 2)});
        const auto rings = GradientRings::elements(buckets, 0);
        EXPECT_LE((reducer->statistics().peak_elements - rings) * static_cast<std::int64_t>(sizeof(float)),
                  bytes.own + bytes.waiting);
      },
      hosts);
}

// Finished slices are sent neither to other hosts nor to peers.
TEST(ScatteredBytes, AreFewer) {
  GradientBuckets buckets;
  buckets.micro_batches = 8;
  buckets.buckets.emplace_back().append(16 * kChunkElements);
  const Hosts hosts(Topology{.host_of = {0, 0, 1, 1}, .host_names = {"a", "b"}});
  const MicroBatchAssignment assignment =
      place_micro_batches(std::vector<int>{2, 2, 2, 2}, {}, std::vector<int>{0, 0, 1, 1});
  const auto bytes = [&](bool scattered) {
    buckets.buckets[0].scattered = scattered;
    return bytes_of(reduce_plan(assignment, hosts, buckets, 1), hosts);
  };
  const std::uint64_t slice = 4 * kChunkElements * sizeof(float);
  EXPECT_EQ(bytes(false).inside_host - bytes(true).inside_host, slice);
  EXPECT_EQ(bytes(false).between_hosts - bytes(true).between_hosts, slice);
}

}  // namespace
}  // namespace lockstep::comm
