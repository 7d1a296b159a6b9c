// Mixed precision: which values are kept in bfloat16 or float16, and whose products take it.
//
// What layers make for one another is of that narrow type, and so are the gradients of that. Everything else is
// float32: the model's output and whatever losses and metrics read, parameters (the masters that the optimizer
// updates), their gradients and the sums of them over shards, states and statistics, and what ops save for backward.
// Inside, ops compute in float32; only what enters a product of matrices is rounded first, weights too (Micikevicius
// and others, Mixed Precision Training, 2018; Kalamkar and others, A Study of BFLOAT16, 2019).
#pragma once

#include <vector>

#include "lockstep/graph.hpp"

namespace lockstep {

/// Whether parameter `i` of the node enters a product of matrices narrower than it is kept: it is rounded to
/// `node.products` first. Those of one dimension (biases) never are.
[[nodiscard]] bool enters_narrow(const Graph& graph, const Node& node, std::size_t i);

/// The type of each narrow copy that a GPU keeps beside Graph::parameters; f32: none.
[[nodiscard]] std::vector<DType> narrow_copies(const Graph& graph);

/// For a device that keeps such copies: nodes read them.
void read_narrow_copies(Graph& graph);

/// `precision`: f32, which changes nothing, bf16 or f16. Before lowering.
void set_precision(Graph& graph, DType precision);

/// Products of float32 may be computed in TF32, on GPUs by their libraries; all else stays as it is.
void allow_tf32(Graph& graph);

}  // namespace lockstep
