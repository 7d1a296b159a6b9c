// attention: softmax(scale * q k^T) v for each head, scale = 1 / sqrt(width / heads); with `causal`, position t sees
// positions up to t. Inputs: one [b, T, 3 * width] with q, k, v side by side, or three: q [b, T, width] and k, v [b, S,
// width]. The scores are computed block by block, never as a whole T x S matrix.
// With fewer `kv_heads` each head of keys and values, of the same size, serves a group of neighbouring heads of
// queries, and its gradient is the sum over the group, in order (Ainslie and others, "GQA", 2023); k and v are narrower
// then. A last input `lengths` (ops/lengths.hpp) says how many keys each sample has; no query sees those behind. Saved:
// the logarithm of the sum of exponentials of each row of scores, [b, heads, T].
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/attention/attention_sizes.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_attention_cpu(const KernelRequest& request);

namespace {

[[noreturn]] void fail(const std::string& expected, std::span<const TensorSpec> inputs) {
  std::string found;
  for (const auto& input : inputs) {
    found += fmt::format("{}{} of {}", found.empty() ? "" : ", ", to_string(input.shape), name_of(input.dtype));
  }
  throw Error(ExitCode::configuration, fmt::format("attention: expected {}, found {}", expected, found));
}

/// The inputs but lengths, which are the last of an even number.
std::span<const TensorSpec> checked_without_lengths(std::span<const TensorSpec> inputs) {
  if (inputs.size() % 2 != 0) return inputs;
  if (inputs.back().dtype != DType::i32) {
    fail("one input (q, k, v side by side) or three (q, k, v), and behind them lengths [batch] of i32, if any", inputs);
  }
  require_lengths("attention", inputs[0], inputs.back());
  return inputs.first(inputs.size() - 1);
}

void check_inputs(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  inputs = checked_without_lengths(inputs);
  for (const auto& input : inputs) {
    if (input.dtype != DType::f32 || input.shape.size() != 3) fail("inputs [batch, time, width] of f32", inputs);
  }
  const std::int64_t width = inputs[0].shape[2], heads = attributes.integer("heads");
  const std::int64_t kv_heads = attributes.has("kv_heads") ? attributes.integer("kv_heads") : heads;
  if (heads % kv_heads != 0) {
    throw Error(ExitCode::configuration,
                fmt::format("attention: expected kv_heads that divide the {} heads, found {}", heads, kv_heads));
  }
  const bool grouped = kv_heads != heads;
  if (inputs.size() == 1 && !grouped && width % 3 != 0) fail("an input [batch, time, 3 * width]", inputs);
  if (inputs.size() == 3) {
    const Shape &q = inputs[0].shape, &k = inputs[1].shape;
    if (k != inputs[2].shape || q[0] != k[0] || (!grouped && q[2] != k[2])) {
      fail("q, k and v of one batch and width", inputs);
    }
    if (attributes.boolean("causal") && q[1] != k[1]) fail("q, k and v of one length where causal", inputs);
    if (k[1] == 0 && q[1] != 0) fail("at least one key", inputs);
  }
  if (grouped && inputs.size() == 1 && width % (heads + 2 * kv_heads) != 0) {
    fail(fmt::format("an input [batch, time, width] of {} heads and twice {} kv_heads", heads, kv_heads), inputs);
  }
  if (inputs.size() == 3 || !grouped) {
    const std::int64_t all = inputs.size() == 1 ? width / 3 : width;
    if (all % heads != 0) fail(fmt::format("a width that is a multiple of {} heads", heads), inputs);
  }
  if (grouped && inputs.size() == 3 && inputs[1].shape[2] != width / heads * kv_heads) {
    fail(fmt::format("k and v of {} heads of {}", kv_heads, width / heads), inputs);
  }
}

Signature infer_attention(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  check_inputs(attributes, inputs);
  const AttentionSizes sizes(attributes, inputs);
  Signature signature;
  signature.outputs.push_back({DType::f32, {sizes.batch, sizes.queries, sizes.heads * sizes.size}});
  signature.saved.push_back({DType::f32, {sizes.batch, sizes.heads, sizes.queries}});
  return signature;
}

Cost attention_cost(const Attributes& attributes, std::span<const TensorSpec> inputs, const Signature& /*signature*/) {
  const AttentionSizes sizes(attributes, inputs);
  const double products = 2.0 * static_cast<double>(sizes.batch * sizes.heads * sizes.queries) *
                          (sizes.keys * sizes.size) * (sizes.causal ? 0.5 : 1);
  return {2 * products, 5 * products};
}

}  // namespace

OpDef make_attention() {
  OpDef op;
  op.name = "attention";
  op.doc = "scaled dot product attention of several heads";
  op.attributes = {{.name = "heads", .kind = AttributeKind::integer, .doc = "number of heads", .minimum = 1},
                   {.name = "kv_heads",
                    .kind = AttributeKind::integer,
                    .doc = "heads of keys and values, each for as many neighbouring heads of queries (grouped-query "
                           "attention; 1: multi-query); default: `heads`",
                    .optional = true,
                    .minimum = 1},
                   {.name = "causal",
                    .kind = AttributeKind::boolean,
                    .doc = "a position sees itself and what is before; otherwise all positions",
                    .default_value = false}};
  op.shorthand = "heads";
  op.max_inputs = 4;
  op.backward_reads = {.inputs = true, .outputs = true};
  op.infer = infer_attention;
  op.cost = attention_cost;
  op.multiplies = true;
  op.kernels[DeviceKind::cpu] = make_attention_cpu;
  return op;
}

}  // namespace lockstep::ops
