// Parameters that are divided between hosts: units of them are fetched before the instructions that read them and
// dropped afterwards (comm/transport/fetched_memory.hpp), in forward and again in backward.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "comm/transport/fetched_memory.hpp"
#include "core/trace.hpp"
#include "graph/program.hpp"

namespace lockstep::exec {

struct FetchedParameters {
  comm::FetchedMemory& memory;
  std::vector<int> unit_of;  ///< by parameter
  std::chrono::milliseconds timeout;
};

/// A run of instructions, from the first to the last that reads a unit, with no read of another unit in between.
struct UnitUse {
  int unit = 0;
  std::size_t first = 0, last = 0;
  bool operator==(const UnitUse&) const = default;
};

/// The units whose parameters, or their low-precision copies, an instruction reads.
[[nodiscard]] std::set<int> units_of(const Instruction& instruction, const std::vector<int>& unit_of);

/// The uses of a program, ordered by first instruction. `divided`: none extends from forward into backward, since a
/// worker has other micro-batches between the two. `within`: a use ends, and another one of its unit begins, rather
/// than that as many or more uses begin after it while it goes on; at least the number of units that an instruction
/// reads.
[[nodiscard]] std::vector<UnitUse> unit_uses(const Program& program, const std::vector<int>& unit_of, bool divided,
                                             std::size_t within = std::numeric_limits<std::size_t>::max());

/// For one worker: holds the units that its current instructions read, and fetches the next ones.
class ParameterReader {
 public:
  ParameterReader(const Program& program, bool divided) : program_(program), divided_(divided) {}

  struct Call {
    const FetchedParameters* parameters = nullptr;  ///< null: all parameters are in memory
    std::uint64_t step = 0;
    TraceRecorder* trace = nullptr;
    int track = 0;
  };
  /// Call before a micro-batch's first instruction, or before the first one of its backward.
  void begin(const Call& call);
  void before(std::size_t instruction);
  void after(std::size_t instruction);
  /// Seconds of waiting since begin().
  double seconds() const { return seconds_; }

 private:
  const Program& program_;
  const bool divided_;
  Call call_;
  std::vector<UnitUse> uses_;
  std::vector<std::size_t> held_;  ///< indices into uses_
  std::size_t next_ = 0;           ///< index into uses_
  double seconds_ = 0;
};

}  // namespace lockstep::exec
