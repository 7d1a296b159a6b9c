// Inputs and expected results of the reducers' tests, each a function of step, micro-batch and bucket only; the sums
// are implemented a second time, without the code under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/micro_batch_assignment.hpp"
#include "comm/reduce/tree.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/random.hpp"

namespace lockstep::comm {

/// Values over several powers of two, so that the order of additions affects the bits.
inline std::vector<float> gradient(std::uint64_t step, int micro_batch, int bucket, std::int64_t elements) {
  RandomStream random(mix(step, static_cast<std::uint64_t>(micro_batch)), static_cast<std::uint64_t>(bucket));
  std::vector<float> values(static_cast<std::size_t>(elements));
  for (float& value : values) {
    const std::uint32_t word = random.word();
    value = std::ldexp(to_unit(word) - 0.5F, static_cast<int>(word % 16) - 8);
  }
  return values;
}

/// Writes a micro-batch's gradient into its buffer.
inline void fill(GradientBuffer buffer, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    buffer.memory[i] = buffer.add ? buffer.memory[i] + values[i] : values[i];
}

/// Neighbours are added level by level; an odd one out moves up.
inline std::vector<float> tree_sum(std::uint64_t step, int micro_batches, int bucket, std::int64_t elements) {
  std::vector<std::vector<float>> level;
  for (int v = 0; v < micro_batches; ++v) level.push_back(gradient(step, v, bucket, elements));
  while (level.size() > 1) {
    std::vector<std::vector<float>> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      next.push_back(level[i]);
      if (i + 1 == level.size()) break;
      for (std::size_t e = 0; e < next.back().size(); ++e) next.back()[e] = level[i][e] + level[i + 1][e];
    }
    level = std::move(next);
  }
  return level[0];
}

inline std::vector<double> scalars_of(std::uint64_t step, const std::vector<int>& micro_batches) {
  std::vector<double> values;
  for (const int micro_batch : micro_batches) {
    for (int k = 0; k < 3; ++k) values.push_back(static_cast<double>(step) * 1000 + micro_batch * 10 + k + 1.0 / 3);
  }
  return values;
}

/// Buckets of one tensor each.
inline GradientBuckets buckets_of(const std::vector<std::int64_t>& elements, int micro_batches) {
  GradientBuckets all;
  all.micro_batches = micro_batches;
  for (const std::int64_t size : elements) all.buckets.push_back(bucket_of(std::vector{size}));
  return all;
}

/// Buckets of several tensors, some empty or odd.
inline GradientBuckets random_buckets(std::mt19937& random, int micro_batches) {
  GradientBuckets all;
  all.micro_batches = micro_batches;
  const unsigned buckets = random() % 5;
  for (unsigned b = 0; b < buckets; ++b) {
    std::vector<std::int64_t> tensors(random() % 4);
    for (auto& elements : tensors) elements = random() % 3 == 0 ? random() % 12'000 : random() % 50;
    all.buckets.push_back(bucket_of(tensors));
  }
  all.spread_owners = random() % 2 == 0;
  return all;
}

/// A buddy placement of random counts, by host or not, or an arbitrary placement.
inline MicroBatchAssignment random_assignment(std::mt19937& random, int micro_batches, const std::vector<int>& hosts) {
  std::vector<int> counts(hosts.size(), 0);
  MicroBatchAssignment any{std::vector<std::vector<int>>(counts.size())};
  for (int v = 0; v < micro_batches; ++v) {
    const std::size_t rank = random() % counts.size();
    ++counts[rank];
    any.micro_batches_of_rank[rank].push_back(v);
  }
  for (auto& list : any.micro_batches_of_rank) std::shuffle(list.begin(), list.end(), random);
  const auto way = random() % 3;
  if (way == 0) return any;
  return way == 1 ? place_micro_batches(counts) : place_micro_batches(counts, {}, hosts);
}

/// The bytes that a rank must send, implemented a second time. Slices are grouped by the position of their owner among
/// its host's ranks; each rank sums, for its own position, those slices for its host, since the host's other ranks read
/// its partial sums of all other slices. For its position it sends the host's sums to owners on other hosts, and its
/// own reduced slices to each peer of its host and once to each other host.
struct TrafficFormula {
  std::uint64_t shared_memory_bytes = 0, network_bytes = 0;

  /// `more_partials`: makes the formula wrong, to show that a test detects it.
  void add(const Communicator& communicator, const GradientBuckets& buckets, const MicroBatchAssignment& assignment,
           int more_partials = 0) {
    const int rank = communicator.rank(), ranks = communicator.size();
    if (ranks == 1) return;
    const Topology& topology = communicator.topology();
    const auto subtrees = [&](const std::vector<int>& micro_batches) {
      return Tree(buckets.micro_batches).maximal_subtrees(micro_batches).size() +
             static_cast<std::size_t>(more_partials);
    };
    const std::size_t k = subtrees(assignment.micro_batches_of_rank[static_cast<std::size_t>(rank)]);
    std::vector<int> of_host;
    for (int r = 0; r < ranks; ++r) {
      const auto& list = assignment.micro_batches_of_rank[static_cast<std::size_t>(r)];
      if (topology.same_host(r, rank)) of_host.insert(of_host.end(), list.begin(), list.end());
    }
    const std::size_t host_k = subtrees(of_host);
    const int local_size = topology.local_size(rank);
    for (int b = 0; b < buckets.count(); ++b) {
      const auto bounds = slice_bounds(buckets.at(b), ranks);
      const auto empty = std::adjacent_find(bounds.begin(), bounds.end());
      const int turned = buckets.spread_owners && empty != bounds.end() ? b % ranks : 0;
      const auto bytes = [&](int r) {
        const auto i = static_cast<std::size_t>((r - turned + ranks) % ranks);
        return static_cast<std::uint64_t>(bounds[i + 1] - bounds[i]) * sizeof(float);
      };
      for (int owner = 0; owner < ranks; ++owner) {
        const bool leads = topology.local_rank(owner) % local_size == topology.local_rank(rank);
        if (!leads) shared_memory_bytes += k * bytes(owner);
        if (leads && !topology.same_host(rank, owner)) network_bytes += host_k * bytes(owner);
      }
      shared_memory_bytes += static_cast<std::size_t>(local_size - 1) * bytes(rank);
      network_bytes += (topology.host_names.size() - 1) * bytes(rank);
    }
  }
};

}  // namespace lockstep::comm
