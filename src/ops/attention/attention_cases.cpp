#include <algorithm>
#include <cmath>

#include "ops/attention/attention_sizes.hpp"
#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// Element (sample, position, channel) of q (0), k (1) or v (2); `channel` is one of q.
double element(const ReferenceCall& call, const AttentionSizes& sizes, std::size_t which, std::int64_t sample,
               std::int64_t position, std::int64_t channel) {
  const bool packed = call.inputs.size() < 3;
  const DoubleTensor& tensor = call.inputs[packed ? 0 : which];
  const std::int64_t head = channel / sizes.size;
  if (which != 0) channel = head / (sizes.heads / sizes.kv_heads) * sizes.size + channel % sizes.size;
  if (packed && which > 0) channel += sizes.heads * sizes.size;
  if (packed && which > 1) channel += sizes.kv_heads * sizes.size;
  return tensor.values[(sample * tensor.shape[1] + position) * tensor.shape[2] + channel];
}

/// Adds the result for query t of the head whose first channel is `channel` to y.
void attend(const ReferenceCall& call, const AttentionSizes& sizes, std::int64_t sample, std::int64_t t,
            std::int64_t channel, double* y) {
  std::int64_t seen = sizes.causal ? t + 1 : sizes.keys;
  if (sizes.padded) {
    seen = std::min(seen, static_cast<std::int64_t>(call.inputs.back().values[sample]));
  }
  std::vector<double> weights;
  double total = 0;
  for (std::int64_t s = 0; s < seen; ++s) {
    double score = 0;
    for (std::int64_t i = 0; i < sizes.size; ++i) {
      score += element(call, sizes, 0, sample, t, channel + i) * element(call, sizes, 1, sample, s, channel + i);
    }
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(sizes.size))));
    total += weights.back();
  }
  for (std::int64_t s = 0; s < seen; ++s) {
    for (std::int64_t i = 0; i < sizes.size; ++i) {
      y[channel + i] += weights[s] / total * element(call, sizes, 2, sample, s, channel + i);
    }
  }
}

ReferenceResult attention_reference(const ReferenceCall& call) {
  std::vector<TensorSpec> specs;
  for (const auto& input : call.inputs) specs.push_back({DType::f32, input.shape});
  const AttentionSizes sizes(call.attributes, specs);
  const std::int64_t width = sizes.heads * sizes.size;
  DoubleTensor y{{sizes.batch, sizes.queries, width}, {}};
  y.values.resize(sizes.batch * sizes.queries * width);
  for (std::int64_t row = 0; row < sizes.batch * sizes.queries; ++row) {
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      attend(call, sizes, row / sizes.queries, row % sizes.queries, head * sizes.size, y.values.data() + row * width);
    }
  }
  return {{y}, {}};
}

Attributes heads(std::int64_t count, bool causal = true) {
  return Attributes({{"heads", count}, {"causal", causal}});
}

Attributes grouped(std::int64_t heads, std::int64_t kv_heads, bool causal = true) {
  return Attributes({{"heads", heads}, {"kv_heads", kv_heads}, {"causal", causal}});
}

}  // namespace

OpCases make_attention_cases() {
  const TensorSpec tower{DType::f32, {2, 5, 6}}, other{DType::f32, {2, 7, 6}};
  return {
      "attention",
      attention_reference,
      {
          {.name = "packed", .attributes = heads(2), .inputs = {{DType::f32, {2, 5, 12}}}},
          {.name = "packed_full", .attributes = heads(1, false), .inputs = {{DType::f32, {2, 5, 9}}}},
          {.name = "three", .attributes = heads(3), .inputs = {tower, tower, tower}},
          {.name = "other_length", .attributes = heads(2, false), .inputs = {tower, other, other}},
          {.name = "two_blocks", .attributes = heads(1), .inputs = {{DType::f32, {1, 70, 6}}}},
          {.name = "three_blocks_full", .attributes = heads(1, false), .inputs = {{DType::f32, {1, 131, 6}}}},
          // Libraries for GPUs support heads of 8 and 16 elements.
          {.name = "heads_of_8", .attributes = heads(2), .inputs = {{DType::f32, {2, 20, 48}}}},
          {.name = "heads_of_8_other_length",
           .attributes = heads(2, false),
           .inputs = {{DType::f32, {1, 9, 16}}, {DType::f32, {1, 17, 16}}, {DType::f32, {1, 17, 16}}}},
          {.name = "heads_of_16", .attributes = heads(1), .inputs = {{DType::f32, {1, 40, 48}}}},
          {.name = "groups", .attributes = grouped(6, 2), .inputs = {{DType::f32, {2, 5, 30}}}},
          {.name = "one_group_full", .attributes = grouped(3, 1, false), .inputs = {{DType::f32, {2, 5, 20}}}},
          {.name = "groups_of_three_inputs",
           .attributes = grouped(4, 2),
           .inputs = {{DType::f32, {2, 7, 12}}, {DType::f32, {2, 7, 6}}, {DType::f32, {2, 7, 6}}}},
          {.name = "groups_other_length",
           .attributes = grouped(4, 1, false),
           .inputs = {{DType::f32, {2, 5, 8}}, {DType::f32, {2, 7, 2}}, {DType::f32, {2, 7, 2}}}},
          {.name = "groups_of_two_blocks", .attributes = grouped(2, 1), .inputs = {{DType::f32, {1, 70, 16}}}},
          {.name = "groups_of_none", .attributes = grouped(2, 2), .inputs = {{DType::f32, {2, 5, 12}}}},
          {.name = "groups_empty", .attributes = grouped(2, 1), .inputs = {{DType::f32, {0, 5, 12}}}},
          with_lengths("lengths", heads(2, false), {{DType::f32, {3, 7, 12}}}, {7, 1, 4}),
          with_lengths("lengths_causal", heads(2), {{DType::f32, {3, 7, 12}}}, {3, 7, 1}),
          with_lengths("lengths_of_three_blocks", heads(1, false), {{DType::f32, {3, 131, 6}}}, {70, 131, 64}),
          with_lengths("lengths_of_keys", heads(2, false), {tower, other, other}, {3, 6}),
          with_lengths("lengths_of_groups", grouped(4, 2, false), {{DType::f32, {2, 70, 16}}}, {66, 5}),
          with_lengths("lengths_empty", heads(2), {{DType::f32, {0, 5, 12}}}, {}),
          {.name = "one_position", .attributes = heads(2), .inputs = {{DType::f32, {2, 1, 12}}}},
          {.name = "empty", .attributes = heads(2), .inputs = {{DType::f32, {0, 5, 12}}}},
          {.name = "speed_gpt", .attributes = heads(4), .inputs = {{DType::f32, {1, 64, 384}}}, .benchmark = true},
          {.name = "speed_long", .attributes = heads(4), .inputs = {{DType::f32, {1, 1024, 768}}}, .benchmark = true},
      },
      CpuOrder::its_own};
}

}  // namespace lockstep::ops
