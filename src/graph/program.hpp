// The compiled program of one shard: instructions in order, each operand's place, and a static memory plan.
//
// Everything that differs by shard or step (inputs, parameters, gradient slots) is an index that the executor
// binds; everything else is an offset into one arena whose size is known before the first step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

struct PartBoundary;

enum class Space : std::uint8_t {
  none,           ///< not wanted
  arena,          ///< index: byte offset
  input,          ///< index into Graph::inputs
  parameter,      ///< index into Graph::parameters
  low_precision,  ///< the same, of the its low-precision copy
  state,          ///< index into Graph::states
  slot,           ///< index into Program::slots: this shard's gradient or statistic
  received,       ///< index into PartBoundary::received: what another part has made
  arrived,        ///< index into PartBoundary::arrivals: a gradient that another part has made
};

struct Location {
  Space space = Space::none;
  std::int64_t index = 0;
  bool operator==(const Location&) const = default;
};

/// What a shard contributes to the sum over shards. A tied parameter has one slot per use.
struct Slot {
  enum class Kind : std::uint8_t { gradient, statistic } kind = Kind::gradient;
  std::int32_t target = 0;  ///< index into Graph::parameters (gradient) or Graph::states (statistic)
  std::int64_t elements = 0;
};

struct Instruction {
  enum class Kind : std::uint8_t { forward, backward, add, recompute } kind = Kind::forward;  ///< recompute: as forward
  std::int32_t node = -1;
  std::vector<Location> inputs, parameters, states, outputs, saved;
  std::vector<Location> statistics;                                              ///< forward in training
  std::vector<Location> output_gradients, input_gradients, parameter_gradients;  ///< backward
  Location workspace;
  std::int64_t elements = 0;    ///< add: outputs[0] = inputs[0] + inputs[1]
  DType dtype = DType::f32;     ///< of the add: f32, or a low-precision one, added in f32 and rounded
  std::int32_t slots_done = 0;  ///< slots 0 ... slots_done - 1 are complete after this instruction
};

/// Where the executor reads what a shard computed. Locations stay valid until the next shard.
struct Results {
  Location loss, count;                                ///< [b] each
  std::vector<std::pair<Location, Location>> metrics;  ///< (value, count) per metric
  Location prediction;                                 ///< inference without a loss only
};

struct Program {
  Mode mode = Mode::training;
  std::vector<Instruction> instructions;
  std::vector<Slot> slots;  ///< in order of completion
  std::int64_t arena_bytes = 0;
  Results results;

  // Of a part of a graph (graph/parts.hpp). What it receives, and the gradients that arrive, are there before the first
  // instruction that reads them. What it sends may be read as soon as it has been made, until the first backward
  // instruction, or the next shard.
  std::int32_t forward_end = 0;                           ///< the instructions before are forward
  std::vector<Location> sent;                             ///< per PartBoundary::sent
  std::vector<std::vector<Location>> received_gradients;  ///< per PartBoundary::received: the terms that are sent
};

/// Bytes of scratch that a node's kernel asks for.
using WorkspaceRule = std::function<std::size_t(std::int32_t node)>;

/// Training: forward, loss, metrics and backward. Inference: forward, and loss and metrics if the graph has them.
struct CompileOptions {
  bool in_place = true;  ///< kernels write over what they are the last to read, where their op says that they may
  /// Nodes whose kernel recomputes output 0 before backward first reads it, instead of keeping it since forward;
  /// empty: none.
  std::function<bool(std::int32_t node)> can_recompute = {};
  /// Of a block (Node::block) only what other nodes read is kept: before its backward, its forward runs a second time.
  bool recompute_blocks = false;
  const PartBoundary* boundary = nullptr;  ///< of a part; null: the graph is whole
};

[[nodiscard]] Program compile(const Graph& graph, Mode mode, const WorkspaceRule& workspace_of,
                              const CompileOptions& options = {});

}  // namespace lockstep
