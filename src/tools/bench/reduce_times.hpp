// How long this communicator takes to sum gradients: with the reducer used in training, and with the library's own
// all-reduce.
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
  std::int64_t elements = 0;                 ///< number of floats in the whole gradient
  std::int64_t elements_a_bucket = 1 << 18;  ///< the last bucket has the rest
  int micro_batches_a_rank = 1;
};

/// The buckets of one tensor, of this size.
[[nodiscard]] comm::GradientBuckets buckets_of(const ReduceLoad& load, int ranks);

/// Sets every element to 1, so that every sum is the number of micro-batches, whatever the association.
void write_ones(const comm::GradientBuffer& buffer, std::int64_t elements);
/// Throws Error(internal) if an element is not `wanted`.
void expect_sum(std::span<const float> found, float wanted);

struct ReduceTimes {
  std::vector<double> seconds;            ///< by round, of the slowest rank
  std::uint64_t shared_memory_bytes = 0;  ///< sent by all ranks in one round
  std::uint64_t network_bytes = 0;
};

inline constexpr std::chrono::seconds kTimeout{60};  ///< how long ranks wait for each other

/// From "every rank's last micro-batch is computed" to "every rank has the sum", `rounds` times after two that do not
/// count. Throws Error(internal) if a sum is wrong. Collective.
[[nodiscard]] ReduceTimes time_reduce(Communicator& communicator, const ReduceLoad& load, bool exact, int rounds,
                                      const comm::ReduceDevice& place = {});

/// The library's all-reduce of as many floats, in place, in one call: MPI's, or that of the GPU library. Bytes are
/// unknown: 0.
[[nodiscard]] ReduceTimes time_all_reduce(Communicator& communicator, std::int64_t elements, int rounds,
                                          const comm::ReduceDevice& place = {});

/// Bus bandwidth as defined by NCCL's tests, in bytes per second: what each rank's link must carry at least, 2(R - 1)/R
/// of the bytes, divided by the time. It can thus be compared with the hardware whatever the number of ranks.
[[nodiscard]] double bus_bandwidth(double bytes, int ranks, double seconds);

}  // namespace lockstep::bench
