#include <cmath>
#include <limits>

#include "ops/attention/attention_sizes.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

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
