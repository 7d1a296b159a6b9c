// The graph: values and the nodes that make them, for one micro-batch of the global batch.
//
// Dimension 0 of every input and activation is the micro-batch's batch `b`. Activations of images are NHWC.
// Values are never overwritten (single-assignment form), and nodes are in execution order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

class OpDef;

using ValueId = std::int32_t;

/// How a parameter is initialised. Each element is a function of (job seed, parameter name, index).
struct Initializer {
  enum class Kind { zeros, ones, constant, normal, uniform, truncated_normal } kind = Kind::zeros;
  double scale = 0;  ///< constant: the value; normal: the standard deviation; uniform: the bound

  static Initializer zeros() { return {Kind::zeros, 0}; }
  static Initializer ones() { return {Kind::ones, 1}; }
  static Initializer normal(double stddev) { return {Kind::normal, stddev}; }
  static Initializer uniform(double bound) { return {Kind::uniform, bound}; }
};

enum class Role : std::uint8_t {
  input,       ///< fed from the data set, by name
  parameter,   ///< trained
  state,       ///< not trained, updated once a step from per-micro-batch statistics (batch norm's running mean)
  activation,  ///< made by a node
};

/// How a value's gradient is stored if not like the value itself: rounded, with a gap after each row (the last
/// dimension).
struct RoundedGradient {
  DType dtype = DType::f32;  ///< f32: it is stored like the value
  std::int64_t gap = 0;      ///< elements
  bool rounds() const { return dtype != DType::f32; }
  bool operator==(const RoundedGradient&) const = default;
};

struct Value {
  /// Unique. Inputs, parameters and states: "stem.weight"; activations: "<node>" or "<node>:<output>".
  std::string name;
  Role role = Role::activation;
  TensorSpec spec;
  std::int32_t producer = -1;  ///< activations: the index of the node that makes it
  Initializer initializer;     ///< parameters and states
  bool decay = true;           ///< parameters: weight decay applies by default (not for norms and biases)
  bool frozen = false;         ///< parameters: no gradient, no update
  bool matrix = false;         ///< parameters: the weight of a layer that multiplies, but for the last one and for
                               ///< shared ones; rows are the first dimension
  bool channels_last = false;  ///< parameters [f, c, h, w]: these and their gradients are [f, h, w, c] in memory
  bool exact = false;          ///< activations: float32 in any precision of the job
  RoundedGradient rounded_gradient = {};  ///< activations; set by lowering
  double momentum = 0;                    ///< states: new = (1 - momentum) * old + momentum * mean over micro-batches
};

struct Node {
  std::string name;   ///< unique; random streams are keyed by its hash
  std::string block;  ///< the piece of the model that it is recomputed with; empty: none
  std::string part;   ///< the part of the model (computed by ranks of its own) that it belongs to; empty: that of the
                      ///< previous node
  const OpDef* op = nullptr;
  Attributes attributes;
  std::vector<ValueId> inputs;      ///< data inputs
  std::vector<ValueId> parameters;  ///< in the order of the op's signature; may be shared (tied)
  std::vector<ValueId> states;
  std::vector<ValueId> outputs;
  std::vector<TensorSpec> saved;       ///< what forward leaves for backward
  DType compute_type = DType::f32;     ///< operands of matrix multiplications are rounded to this type
  bool fast_float32 = false;           ///< libraries may round operands in float32, where that makes them faster
  bool low_precision_weights = false;  ///< weights are read from copies in the compute type
  std::vector<std::string>
      classes;  ///< of a metric with OpDef::of_class: what it calls classes; empty: it has one value
  const OpDef* epilogue = nullptr;  ///< set by lowering: the node's own kernel also applies this op to its output
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;      ///< Role::input, in order of declaration
  std::vector<ValueId> parameters;  ///< in order of first use
  std::vector<ValueId> states;
  ValueId output = -1;                ///< the model's prediction
  std::vector<ValueId> outputs;       ///< without a loss, of several predictions: those that `output` joins
  std::int32_t loss = -1;             ///< index of the loss node; -1: none
  std::vector<std::int32_t> metrics;  ///< indices of the metric nodes
  bool keeps_output = false;          ///< with a loss: inference has the output among its results, too

  const Value& at(ValueId id) const { return values.at(id); }
};

}  // namespace lockstep
