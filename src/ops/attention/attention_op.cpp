// attention: softmax(scale * q k^T) v for each head, scale = 1 / sqrt(width / heads); with `causal`, position t sees
// positions up to t. Inputs: one [b, T, 3 * width] with q, k, v side by side, or three: q [b, T, width] and k, v [b, S,
// width]. The scores are computed block by block, never as a whole T x S matrix.
// With fewer `kv_heads` each head of keys and values, of the same size, serves a group of neighbouring heads of
// queries, and its gradient is the sum over the group, in order (Ainslie and others, "GQA", 2023); k and v are narrower
// then. A last input `lengths` (ops/lengths.hpp) says how many keys each sample has; no query sees those behind. Saved:
// the logarithm of the sum of exponentials of each row of scores, [b, heads, T].
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/attention/attention_sizes.hpp"
#include "ops/onnx_scope.hpp"

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

/// [b, T, heads * size] to [b, heads, T, size].
std::string by_head(OnnxScope& scope, const std::string& x, std::int64_t positions, std::int64_t heads,
                    std::int64_t size) {
  return scope.transpose(scope.reshape(x, {0, positions, heads, size}), {0, 2, 1, 3});
}

/// Heads of keys or values, once for each head of queries.
std::string shared(OnnxScope& scope, const std::string& x, const AttentionSizes& s) {
  std::string heads = by_head(scope, x, s.keys, s.kv_heads, s.size);
  if (s.group() == 1) return heads;
  const std::string apart = scope.reshape(heads, {0, s.kv_heads, 1, s.keys, s.size});
  const std::string repeated = scope.add("Expand", {apart, scope.integers({1, s.kv_heads, s.group(), s.keys, s.size})});
  return scope.reshape(repeated, {0, s.heads, s.keys, s.size});
}

/// Minus infinity where a query does not see a key because of its position.
std::string mask(OnnxScope& scope, const AttentionSizes& s) {
  std::vector<float> values(s.queries * s.keys, 0);
  for (std::int64_t query = 0; query < s.queries; ++query) {
    for (std::int64_t key = s.seen(query + 1, s.keys); key < s.keys; ++key) {
      values[query * s.keys + key] = -std::numeric_limits<float>::infinity();
    }
  }
  return scope.constant(std::move(values), {s.queries, s.keys});
}

}  // namespace

OpDef make_attention() {
  OpDef op;
  op.name = "attention";
  op.doc = "scaled dot product attention with several heads";
  op.attributes = {{.name = "heads", .kind = AttributeKind::integer, .doc = "number of heads", .minimum = 1},
                   {.name = "kv_heads",
                    .kind = AttributeKind::integer,
                    .doc = "heads of keys and values (grouped-query attention); default: `heads`",
                    .optional = true,
                    .minimum = 1},
                   {.name = "causal",
                    .kind = AttributeKind::boolean,
                    .doc = "positions see only themselves and earlier ones",
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

void attention_to_onnx(OnnxScope& scope) {
  std::vector<TensorSpec> inputs;
  for (std::size_t i = 0; i < scope.node().inputs.size(); ++i) inputs.push_back(scope.input_spec(i));
  const AttentionSizes s(scope.attributes(), inputs);
  std::vector<std::string> qkv;
  if (s.packed) {
    const std::string sizes = scope.integers({s.width(), s.kv_width(), s.kv_width()});
    qkv = scope.add_several("Split", {scope.input(), sizes}, 3, {{"axis", std::int64_t{2}}});
  } else {
    qkv = {scope.input(0), scope.input(1), scope.input(2)};
  }
  const std::string q = by_head(scope, qkv[0], s.queries, s.heads, s.size);
  const std::string k = scope.transpose(shared(scope, qkv[1], s), {0, 1, 3, 2});
  const std::string scale = scope.number(1 / std::sqrt(static_cast<double>(s.size)));
  std::string scores = scope.add("Mul", {scope.add("MatMul", {q, k}), scale});
  if (s.causal) scores = scope.add("Add", {scores, mask(scope, s)});
  if (s.padded) {
    const std::string there = scope.reshape(scope.before_end(inputs.size() - 1, s.keys), {0, 1, 1, s.keys});
    scores = scope.add("Where", {there, scores, scope.number(-std::numeric_limits<float>::infinity())});
  }
  const std::string shares = scope.add("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  const std::string seen = scope.add("MatMul", {shares, shared(scope, qkv[2], s)});
  scope.result(scope.reshape(scope.transpose(seen, {0, 2, 1, 3}), {0, s.queries, s.width()}));
}

}  // namespace lockstep::ops
