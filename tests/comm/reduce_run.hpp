// One run of a reducer over threads: several steps with given placements and hosts. The results are compared with the
// tree and the formula of reduce_cases.hpp, which do not depend on ranks, and the scalars with what was passed in.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/reduce_plan.hpp"
#include "comm/reduce_cases.hpp"
#include "core/digest.hpp"
#include "seeds.hpp"

namespace lockstep::comm {

struct Case {
  GradientBuckets buckets;
  int ranks = 1, workers = 1;
  std::vector<MicroBatchAssignment> assignments;  ///< by step
  std::vector<int> hosts;
  unsigned order = 0;   ///< seed of the order in which workers finish buckets
  bool sleeps = false;  ///< sometimes, between buckets

  [[nodiscard]] std::uint64_t step(std::size_t index) const { return index + 5; }
  [[nodiscard]] std::string text() const {
    std::vector<std::string> shares;
    std::vector<std::int64_t> elements;
    for (const auto& bucket : buckets.buckets) elements.push_back(bucket.elements);
    for (const auto& assignment : assignments) shares.push_back(fmt::format("{}", assignment.micro_batches_of_rank));
    return fmt::format(
        "{} micro-batches, buckets of {} elements, {} ranks on hosts {}, {} workers, micro-batches by step and rank {}",
        buckets.micro_batches, elements, ranks, hosts, workers, fmt::join(shares, " "));
  }
};

/// A bit of everything, for an all-reduce between GPUs.
inline Case random_case(unsigned seed, int min_ranks, int max_ranks) {
  std::mt19937 random(seed);
  Case c;
  c.buckets = random_buckets(random, between(random, 1, 24));
  c.buckets.spread_owners = false;
  c.ranks = between(random, min_ranks, max_ranks);
  c.workers = between(random, 1, 3);
  c.hosts = random_hosts(random, c.ranks, 3);
  c.order = static_cast<unsigned>(random());
  const int steps = between(random, 1, 3);
  for (int s = 0; s < steps; ++s) c.assignments.push_back(random_assignment(random, c.buckets.micro_batches, c.hosts));
  return c;
}

/// A rank with gradients in host memory: the reducer, and how a test writes buffers and reads sums.
class HostSide {
 public:
  explicit HostSide(GradientReducer& reducer) : reducer_(&reducer) {}
  HostSide(Communicator& communicator, const Case& c, ReducerOptions options)
      : made_(make_reducer(communicator, c.buckets, options)), reducer_(made_.get()) {}
  [[nodiscard]] GradientReducer& reducer() { return *reducer_; }
  void write(unsigned /*worker*/, GradientBuffer buffer, const std::vector<float>& values) { fill(buffer, values); }
  [[nodiscard]] std::span<const float> read(int bucket) { return reducer_->reduced(bucket); }
  void have_read() {}

 private:
  std::unique_ptr<GradientReducer> made_;
  GradientReducer* reducer_;
};

/// One rank's part of a step: workers take micro-batches in the given order and finish their buckets in random order.
template <class Side>
void compute(Side& side, const Case& c, std::uint64_t step, const std::vector<int>& micro_batches, unsigned seed) {
  std::mutex mutex;
  std::size_t next = 0;
  const auto work = [&](unsigned worker) {
    std::mt19937 random(seed * 31 + worker);
    while (true) {
      int micro_batch = 0;
      {
        const std::lock_guard lock(mutex);
        if (next == micro_batches.size()) return;
        micro_batch = micro_batches[next++];
      }
      std::vector<int> order(c.buckets.buckets.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      for (const int bucket : order) {
        const auto values = gradient(step, micro_batch, bucket, c.buckets.at(bucket).elements);
        const GradientBuffer buffer = side.reducer().buffer(micro_batch, bucket);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.memory) % 64, 0U);
        side.write(worker, buffer, values);
        if (c.sleeps && random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
        side.reducer().ready(micro_batch, bucket);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int w = 0; w < c.workers; ++w) threads.emplace_back(work, static_cast<unsigned>(w));
  for (std::thread& thread : threads) thread.join();
}

inline void compute(GradientReducer& reducer, const Case& c, std::uint64_t step, const std::vector<int>& micro_batches,
                    unsigned seed) {
  HostSide side(reducer);
  compute(side, c, step, micro_batches, seed);
}

/// The results that every way of computing the same gradients must have.
struct Expected {
  std::string sha256;     ///< over all reduced buckets of all steps
  int more_partials = 0;  ///< than the formula says
};

inline Expected expected_of(const Case& c) {
  Sha256 hash;
  for (std::size_t s = 0; s < c.assignments.size(); ++s) {
    for (int b = 0; b < c.buckets.count(); ++b) {
      const auto sum = tree_sum(c.step(s), c.buckets.micro_batches, b, c.buckets.at(b).elements);
      hash.add(std::as_bytes(std::span(sum)));
    }
  }
  return {hash.hex(), 0};
}

/// What the ranks contribute in addition to their micro-batches' scalars.
inline std::vector<double> scalars_of_ranks(int ranks, std::uint64_t step) {
  std::vector<double> values;
  for (int rank = 0; rank < ranks; ++rank) values.insert(values.end(), {rank + 0.5, static_cast<double>(step)});
  return values;
}

/// finish(), with the scalars of this rank.
inline Scalars finish(GradientReducer& reducer, const Case& c, std::uint64_t step, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const std::vector<double> of_micro_batches =
      scalars_of(step, c.assignments[step - c.step(0)].micro_batches_of_rank[r]);
  const std::vector<double> of_ranks = scalars_of_ranks(c.ranks, step);
  return reducer.finish([&] {
    return OwnScalars{of_micro_batches, 3, std::span<const double>(of_ranks).subspan(2 * r, 2), 1U << r};
  });
}

/// What is wrong with the scalars; empty: nothing.
inline std::string wrong_scalars(const Scalars& found, const Case& c, std::uint64_t step) {
  std::vector<int> all(static_cast<std::size_t>(c.buckets.micro_batches));
  std::iota(all.begin(), all.end(), 0);
  if (found.values != scalars_of(step, all)) return "other scalars of the micro-batches";
  if (found.rank_values != scalars_of_ranks(c.ranks, step)) return "other scalars of the ranks";
  return found.flags == (1U << c.ranks) - 1 ? "" : "other flags";
}

/// Runs the case; returns the first error, with the rank that found it. Empty: none.
template <class Side = HostSide>
std::string wrong(const Case& c, const Expected& expected, ReducerOptions options = {}) {
  std::mutex mutex;
  std::string first;
  const auto complain = [&](int rank, const std::string& what) {
    const std::lock_guard lock(mutex);
    if (first.empty() && !what.empty()) first = fmt::format("rank {}: {}", rank, what);
  };
  const auto compare = [&](int rank, const char* what, const auto& found, const auto& wanted) {
    if (found != wanted) complain(rank, fmt::format("{}: expected {}, found {}", what, wanted, found));
  };
  const auto body = [&](Communicator& communicator) {
    Side side(communicator, c, options);
    GradientReducer* const reducer = &side.reducer();
    const int rank = communicator.rank();
    TrafficFormula formula;
    PlannedBytes planned;
    Sha256 hash;
    for (std::size_t s = 0; s < c.assignments.size(); ++s) {
      const MicroBatchAssignment& assignment = c.assignments[s];
      reducer->begin_step(c.step(s), assignment);
      compute(side, c, c.step(s), assignment.micro_batches_of_rank[static_cast<std::size_t>(rank)],
              c.order + static_cast<unsigned>(100 * s) + static_cast<unsigned>(rank));
      const Scalars scalars = finish(*reducer, c, c.step(s), rank);
      for (int b = 0; b < c.buckets.count(); ++b) hash.add(std::as_bytes(side.read(b)));
      side.have_read();
      complain(rank, wrong_scalars(scalars, c, c.step(s)));
      formula.add(communicator, c.buckets, assignment, expected.more_partials);
      const Hosts hosts(communicator.topology());
      const PlannedBytes bytes = bytes_of(reduce_plan(assignment, hosts, c.buckets, rank), hosts);
      planned.inside_host += bytes.inside_host;
      planned.between_hosts += bytes.between_hosts;
    }
    const auto found = reducer->statistics();
    compare(rank, "hash of the sums", hash.hex(), expected.sha256);
    compare(rank, "bytes read by its host", found.shared_memory_bytes, formula.shared_memory_bytes);
    compare(rank, "bytes sent to other hosts", found.network_bytes, formula.network_bytes);
    compare(rank, "bytes inside the host by bytes_of()", planned.inside_host, formula.shared_memory_bytes);
    compare(rank, "bytes between hosts by bytes_of()", planned.between_hosts, formula.network_bytes);
  };
  try {
    run_in_threads(c.ranks, body, c.hosts);
  } catch (const std::exception& error) {
    return error.what();
  }
  return first;
}

}  // namespace lockstep::comm
