// Mixed precision: which values are kept in bfloat16 or float16, and whose products take it.
//
// What layers make for one another is of that low-precision type, and so are the gradients of that. Everything else is
// float32: the model's output and whatever losses and metrics read, parameters (the masters that the optimizer
// updates), their gradients and the sums of them over shards, states and statistics, and what ops save for backward.
// Inside, ops compute in float32; only what enters a product of matrices is rounded first, weights too (Micikevicius
// and others, Mixed Precision Training, 2018; Kalamkar and others, A Study of BFLOAT16, 2019).
#pragma once

#include <vector>

#include "lockstep/graph.hpp"

namespace lockstep {

/// Whether parameter `i` of the node enters a matrix product in less precision than it is kept in: it is rounded to
/// `node.compute_type` first. Those of one dimension (biases) never are.
[[nodiscard]] bool is_low_precision_weight(const Graph& graph, const Node& node, std::size_t i);

/// The type of each low-precision weight that a GPU keeps beside Graph::parameters; f32: none.
[[nodiscard]] std::vector<DType> low_precision_weights(const Graph& graph);

/// For a device that keeps such copies: nodes read them.
void use_low_precision_weights(Graph& graph);

/// `precision`: f32, which changes nothing, bf16 or f16. Before lowering.
void set_precision(Graph& graph, DType precision);

/// Products of float32 may be computed in TF32, on GPUs by their libraries; all else stays as it is.
void allow_tf32(Graph& graph);

}  // namespace lockstep
