// Mixed precision: which values are kept in bfloat16 or float16, and which products compute in it.
//
// Activations between layers have the low-precision type, and so do their gradients. Everything else is float32: the
// model's output and whatever losses and metrics read, what lies between these and is Value::exact, parameters (the
// masters that the optimizer updates), their gradients and the sums of them over micro-batches, states and statistics,
// and what ops save for backward. Inside, ops compute in float32; only operands of matrix products, including weights,
// are rounded first (Micikevicius and others, Mixed Precision Training, 2018; Kalamkar and others, A Study of BFLOAT16,
// 2019).
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/graph.hpp"

namespace lockstep {

/// Whether parameter `i` of the node is rounded to `node.compute_type`, which is less precise than its own type, before
/// a matrix product. One-dimensional parameters (biases) never are.
[[nodiscard]] bool is_low_precision_weight(const Graph& graph, const Node& node, std::size_t i);

/// The type of each low-precision weight that a GPU keeps beside Graph::parameters; f32: none.
[[nodiscard]] std::vector<DType> low_precision_weights(const Graph& graph);

/// For a device that keeps such copies: makes nodes read them.
void use_low_precision_weights(Graph& graph);

/// Bytes of the gradient of a value, as it is stored (Value::rounded_gradient).
[[nodiscard]] std::size_t gradient_bytes(const Value& value);

/// `precision`: f32, which changes nothing, bf16 or f16. To be called before lowering.
void set_precision(Graph& graph, DType precision);

/// Lets float32 products be computed in TF32 by a GPU's libraries; everything else stays the same.
void allow_tf32(Graph& graph);

}  // namespace lockstep
