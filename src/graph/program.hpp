// The compiled program of one micro-batch: instructions in order, the location of each operand, and a static memory
// plan.
//
// Whatever differs by micro-batch or step (inputs, parameters, gradient slots) is an index that the executor binds;
// everything else is an offset into one arena whose size is known before the first step.
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
  low_precision,  ///< index into Graph::parameters, for the parameter's low-precision copy
  state,          ///< index into Graph::states
  slot,           ///< index into Program::slots: this micro-batch's gradient or statistic
  received,       ///< index into PartBoundary::received: what another part has made
  arrived,        ///< index into PartBoundary::arrivals: a gradient that another part has made
};

struct Location {
  Space space = Space::none;
  std::int64_t index = 0;
  bool operator==(const Location&) const = default;
};

/// What a micro-batch contributes to the sum over micro-batches. A tied parameter has one slot per use.
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
  Location input_gradient_term, output_gradient_term;  ///< backward: see BackwardCall; none: there is no such term
  Location workspace;
  std::int64_t elements = 0;    ///< add: outputs[0] = inputs[0] + inputs[1]
  DType dtype = DType::f32;     ///< of an add: f32, or a low-precision type, whose sums are computed in f32 and rounded
  std::int32_t slots_done = 0;  ///< slots 0 ... slots_done - 1 are complete after this instruction
};

/// Where the executor reads what a micro-batch computed. Locations stay valid until the next micro-batch.
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

  // For a part of a graph (graph/parts.hpp). What it receives, and the gradients that arrive, must be in memory before
  // the first instruction that reads them. What it sends may be read as soon as it has been made, until the first
  // backward instruction, or the next micro-batch.
  std::int32_t forward_end = 0;                           ///< the instructions before this one are forward
  std::vector<Location> sent;                             ///< per PartBoundary::sent
  std::vector<std::vector<Location>> received_gradients;  ///< per PartBoundary::received: the terms that are sent
};

/// Bytes of scratch memory that a node's kernel needs.
using WorkspaceRule = std::function<std::size_t(std::int32_t node)>;

/// Training: forward, loss, metrics and backward. Inference: forward, and loss and metrics if the graph has them.
struct CompileOptions {
  bool in_place = true;  ///< let kernels overwrite what they are the last to read, if their op allows it
  /// Nodes whose kernel recomputes output 0 right before backward first reads it, instead of keeping it since forward;
  /// empty: none.
  std::function<bool(std::int32_t node)> can_recompute = {};
  /// Nodes whose kernel can add the gradient of input 0 to another one of the same value; empty: none.
  std::function<bool(std::int32_t node)> adds_input_gradient = {};
  /// Nodes whose kernel can take the gradient of output 0 as two terms; empty: none.
  std::function<bool(std::int32_t node)> adds_output_gradients = {};
  /// Only those values of a block (Node::block) are kept that other nodes read: its forward runs again before its
  /// backward.
  bool recompute_blocks = false;
  const PartBoundary* boundary = nullptr;  ///< of a part; null: the graph is a whole model
};

[[nodiscard]] Program compile(const Graph& graph, Mode mode, const WorkspaceRule& workspace_of,
                              const CompileOptions& options = {});

}  // namespace lockstep
