// Mixed precision: which values are kept in bfloat16 or float16, and whose products take it.
//
// What layers make for one another is of that narrow type, and so are the gradients of that. Everything else is
// float32: the model's output and whatever losses and metrics read, parameters (the masters that the optimizer
// updates), their gradients and the sums of them over shards, states and statistics, and what ops save for backward.
// Inside, ops compute in float32; only what enters a product of matrices is rounded first, weights too (Micikevicius
// and others, Mixed Precision Training, 2018; Kalamkar and others, A Study of BFLOAT16, 2019).
#pragma once

#include "lockstep/graph.hpp"

namespace lockstep {

/// `precision`: f32, which changes nothing, bf16 or f16. Before lowering.
void set_precision(Graph& graph, DType precision);

}  // namespace lockstep
