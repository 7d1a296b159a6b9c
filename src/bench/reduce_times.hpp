// How long this communicator takes to add gradients: the reducer that trains, and the library's own all-reduce.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/transport/gpu_transport.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::bench {

struct ReduceLoad {
  std::int64_t elements = 0;                 ///< floats of the whole gradient
  std::int64_t elements_a_bucket = 1 << 18;  ///< the last one has the rest
  int shards_a_rank = 1;
};

/// Of one tensor in buckets of this size.
[[nodiscard]] comm::GradientBuckets buckets_of(const ReduceLoad& load, int ranks);

/// A gradient whose every element is 1, so that every sum is the number of shards, in any association.
void write_ones(const comm::GradientBuffer& buffer, std::int64_t elements);
/// Throws Error(internal) where an element is not what is wanted.
void expect_sum(std::span<const float> found, float wanted);

struct ReduceTimes {
  std::vector<double> seconds;            ///< by round, of the rank that took longest
  std::uint64_t shared_memory_bytes = 0;  ///< sent by all ranks in a round
  std::uint64_t network_bytes = 0;
};

inline constexpr std::chrono::seconds kTimeout{60};  ///< for which ranks that are timed wait for each other

/// From "every rank's last shard is computed" to "every rank has the sum", `rounds` times after two that do not count.
/// Throws Error(internal) where a sum is wrong. All ranks call it.
[[nodiscard]] ReduceTimes time_reduce(Communicator& communicator, const ReduceLoad& load, bool exact, int rounds,
                                      const comm::ReduceDevice& place = {});

/// The library's all-reduce of as many floats, in place, in one call: MPI's, or that of GPUs. Bytes are not known: 0.
[[nodiscard]] ReduceTimes time_all_reduce(Communicator& communicator, std::int64_t elements, int rounds,
                                          const comm::ReduceDevice& place = {});

/// As NCCL's tests say it: what each rank's link must carry at least, 2(R - 1)/R of the bytes, over the time. So it can
/// be held against the hardware whatever the number of ranks. Bytes a second.
[[nodiscard]] double bus_bandwidth(double bytes, int ranks, double seconds);

}  // namespace lockstep::bench
