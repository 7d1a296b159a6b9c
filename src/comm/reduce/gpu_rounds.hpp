// A rank's plan of one bucket (comm/reduce/reduce_plan.hpp) in the form that a GPU carries out: rounds of messages,
// with additions between them, for a library that has only send and receive (NCCL). It assigns memory to each sum of
// the plan.
//
// Between two ranks, the messages of a round have the same order on both sides (by slice, then by sum), since such
// libraries match them by order alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/reduce/reduce_plan.hpp"
#include "device/gpu/gpu.hpp"

namespace lockstep::comm {

struct GpuRounds {
  /// Where a slice of a sum is stored.
  struct Location {
    int root = -1;            ///< >= 0: in this rank's partial sum with that number; else in receive memory
    std::int64_t offset = 0;  ///< elements from the start of the bucket, or of receive memory
  };
  struct Message {
    int peer = 0;
    Location location;
    std::int64_t count = 0;
  };
  /// A sum of slices in tree order. Each addition is left += right, in the left operand's memory.
  struct Sum {
    std::vector<Location> parts;
    std::vector<Addition> additions;
    std::int64_t count = 0;
  };
  struct Round {
    std::vector<Message> sends, receives;
  };
  Round inside;                       ///< partial sums to the slices' leaders on this host
  std::vector<Sum> gathered;          ///< sums for the slices that this rank leads for owners on other hosts
  Round between;                      ///< those sums to the owners
  Sum own;                            ///< the sum of its own slice
  std::int64_t first = 0;             ///< of the own slice, in the bucket
  std::int64_t receive_elements = 0;  ///< size of receive memory
};

/// Where the sum is stored after its additions.
[[nodiscard]] GpuRounds::Location result_of(const GpuRounds::Sum& sum);

[[nodiscard]] GpuRounds gpu_rounds(const ReducePlan& plan, const Hosts& hosts, int bucket);

/// The memory that the locations of a GpuRounds refer to: a rank's partial sums of the bucket, by root, and
/// receive_elements floats.
struct SliceMemory {
  std::span<float* const> roots;
  float* received = nullptr;
  float* at(GpuRounds::Location at) const { return (at.root >= 0 ? roots[at.root] : received) + at.offset; }
};

/// Carries out combine_order()'s additions on the stream, each left += right in the left operand's memory; the sum
/// itself is written to `out`, or, if that is null, stays where it is.
void add_in_order(device::Gpu& gpu, device::Gpu::Stream stream, std::vector<float*> operands,
                  std::span<const Addition> additions, std::int64_t count, float* out);

/// Adds the parts in place, on the stream; the sum itself is written to `out`, or, if that is null, to result_of(sum).
void add_slices(device::Gpu& gpu, device::Gpu::Stream stream, const GpuRounds::Sum& sum, const SliceMemory& memory,
                float* out = nullptr);

}  // namespace lockstep::comm
