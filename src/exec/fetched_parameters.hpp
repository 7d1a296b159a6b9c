// Parameters that are divided between hosts: units of them are fetched ahead of the instructions that read them and
// dropped after those (comm/transport/fetched_memory.hpp), in forward and again in backward.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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

/// From the first to the last instruction of a row that reads a unit, with no other unit's between them.
struct UnitUse {
  int unit = 0;
  std::size_t first = 0, last = 0;
  bool operator==(const UnitUse&) const = default;
};

/// Of a program, by first instruction. `divided`: none goes on from forward to backward, since a worker has other
/// shards between the two.
[[nodiscard]] std::vector<UnitUse> unit_uses(const Program& program, const std::vector<int>& unit_of, bool divided);

/// Of one worker: has the units that instructions read there while they run, and the next ones on their way.
class ParameterReader {
 public:
  ParameterReader(const Program& program, bool divided) : program_(program), divided_(divided) {}

  struct Call {
    const FetchedParameters* parameters = nullptr;  ///< null: all are there
    std::uint64_t step = 0;
    TraceRecorder* trace = nullptr;
    int track = 0;
  };
  /// Before a shard's first instruction, or the first of its backward.
  void begin(const Call& call);
  void before(std::size_t instruction);
  void after(std::size_t instruction);
  /// That it has waited since begin().
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  const Program& program_;
  const bool divided_;
  Call call_;
  std::vector<UnitUse> uses_;
  std::vector<std::size_t> held_;  ///< of uses_
  std::size_t next_ = 0;           ///< of uses_
  double seconds_ = 0;
};

}  // namespace lockstep::exec
