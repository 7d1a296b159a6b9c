#include <cmath>

#include "ops/attention/attention_sizes.hpp"
#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// Element (sample, position, channel) of q (0), k (1) or v (2).
double element(const ReferenceCall& call, std::size_t which, std::int64_t sample, std::int64_t position,
               std::int64_t channel) {
  const bool packed = call.inputs.size() == 1;
  const DoubleTensor& tensor = call.inputs[packed ? 0 : which];
  const std::int64_t width = tensor.shape[2];
  const std::int64_t column = packed ? static_cast<std::int64_t>(which) * width / 3 + channel : channel;
  return tensor.values[static_cast<std::size_t>((sample * tensor.shape[1] + position) * width + column)];
}

/// Adds the result for query t of the head whose first channel is `channel` to y.
void attend(const ReferenceCall& call, const AttentionSizes& sizes, std::int64_t sample, std::int64_t t,
            std::int64_t channel, double* y) {
  const std::int64_t seen = sizes.causal ? t + 1 : sizes.keys;
  std::vector<double> weights;
  double total = 0;
  for (std::int64_t s = 0; s < seen; ++s) {
    double score = 0;
    for (std::int64_t i = 0; i < sizes.size; ++i) {
      score += element(call, 0, sample, t, channel + i) * element(call, 1, sample, s, channel + i);
    }
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(sizes.size))));
    total += weights.back();
  }
  for (std::int64_t s = 0; s < seen; ++s) {
    for (std::int64_t i = 0; i < sizes.size; ++i) {
      y[channel + i] += weights[static_cast<std::size_t>(s)] / total * element(call, 2, sample, s, channel + i);
    }
  }
}

ReferenceResult attention_reference(const ReferenceCall& call) {
  std::vector<TensorSpec> specs;
  for (const auto& input : call.inputs) specs.push_back({DType::f32, input.shape});
  const AttentionSizes sizes(call.attributes, specs);
  const std::int64_t width = sizes.heads * sizes.size;
  DoubleTensor y{{sizes.batch, sizes.queries, width}, {}};
  y.values.resize(static_cast<std::size_t>(sizes.batch * sizes.queries * width));
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
          {.name = "one_position", .attributes = heads(2), .inputs = {{DType::f32, {2, 1, 12}}}},
          {.name = "empty", .attributes = heads(2), .inputs = {{DType::f32, {0, 5, 12}}}},
          {.name = "speed_gpt", .attributes = heads(4), .inputs = {{DType::f32, {1, 64, 384}}}, .benchmark = true},
          {.name = "speed_long", .attributes = heads(4), .inputs = {{DType::f32, {1, 1024, 768}}}, .benchmark = true},
      },
      CpuOrder::its_own};
}

}  // namespace lockstep::ops
