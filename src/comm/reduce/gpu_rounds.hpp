// A rank's plan of one bucket (comm/reduce/reduce_plan.hpp) as a GPU carries it out: rounds of messages, and additions
// between them, for a library that has only send and receive (NCCL). It gives each sum of the plan its memory.
//
// Between two ranks the messages of a round are in one order on both sides (by slice, then by sum), since such
// libraries match them by order alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/reduce/reduce_plan.hpp"
#include "device/gpu/gpu.hpp"

namespace lockstep::comm {

struct GpuRounds {
  /// Where a slice of some sum stands.
  struct Location {
    int root = -1;            ///< >= 0: in this rank's partial sum of that number; else: in receive memory
    std::int64_t offset = 0;  ///< elements from the start of the bucket, or of receive memory
  };
  struct Message {
    int peer = 0;
    Location location;
    std::int64_t count = 0;
  };
  /// A sum of slices in the tree's order. Each addition is left += right, in the memory of the left one.
  struct Sum {
    std::vector<Location> parts;
    std::vector<Addition> additions;
    std::int64_t count = 0;
  };
  struct Round {
    std::vector<Message> sends, receives;
  };
  Round inside;                       ///< partial sums to the slices' leaders on this host
  std::vector<Sum> gathered;          ///< what this rank leads for owners on other hosts
  Round between;                      ///< that, to the owners
  Sum own;                            ///< the own slice
  std::int64_t first = 0;             ///< of the own slice, in the bucket
  std::int64_t receive_elements = 0;  ///< of receive memory
};

/// Where the sum stands after its additions.
[[nodiscard]] GpuRounds::Location result_of(const GpuRounds::Sum& sum);

[[nodiscard]] GpuRounds gpu_rounds(const ReducePlan& plan, const Hosts& hosts, int bucket);

/// What the locations of a GpuRounds stand for: a rank's partial sums of the bucket, by root, and receive_elements
/// floats.
struct SliceMemory {
  std::span<float* const> roots;
  float* received = nullptr;
  [[nodiscard]] float* at(GpuRounds::Location at) const {
    return (at.root >= 0 ? roots[static_cast<std::size_t>(at.root)] : received) + at.offset;
  }
};

/// Adds the parts where they stand, on the stream; the sum itself comes to `out`, or where null to result_of(sum).
void add_slices(device::Gpu& gpu, device::Gpu::Stream stream, const GpuRounds::Sum& sum, const SliceMemory& memory,
                float* out = nullptr);

}  // namespace lockstep::comm
