#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// Moments of channel c in two passes.
void moments(const DoubleTensor& x, std::size_t channels, std::size_t c, double& mean, double& squares) {
  mean = squares = 0;
  for (std::size_t i = c; i < x.values.size(); i += channels) mean += x.values[i];
  mean /= static_cast<double>(x.values.size()) / channels;
  for (std::size_t i = c; i < x.values.size(); i += channels) squares += (x.values[i] - mean) * (x.values[i] - mean);
}

ReferenceResult batch_norm_reference(const ReferenceCall& call) {
  const bool training = call.mode == Mode::training;
  const DoubleTensor& x = call.inputs[0];
  const std::size_t channels = x.shape.back();
  ReferenceResult result{{x}, {}};
  if (training) result.statistics = call.states;
  for (std::size_t c = 0; c < channels && !x.values.empty(); ++c) {
    double mean = call.states[0].values[c], variance = call.states[1].values[c], squares = 0;
    if (training) {
      const auto count = static_cast<double>(x.values.size()) / channels;
      moments(x, channels, c, mean, squares);
      variance = squares / count;
      result.statistics[0].values[c] = mean;
      result.statistics[1].values[c] = squares / (count - 1);
    }
    const double scale = call.parameters[0].values[c] / std::sqrt(variance + call.attributes.number("epsilon"));
    for (std::size_t i = c; i < x.values.size(); i += channels) {
      result.outputs[0].values[i] = (x.values[i] - mean) * scale + call.parameters[1].values[c];
    }
  }
  return result;
}

/// Far from 0, where computing the variance from squares would cancel.
void far_away(int /*index*/, Tensor& tensor) {
  for (float& value : tensor.as<float>()) value = value + 1000.0F;
}

OpCase batch_norm_speed(std::string name, Shape shape) {
  return {.name = std::move(name), .inputs = {{DType::f32, std::move(shape)}}, .benchmark = true};
}

}  // namespace

OpCases make_batch_norm_cases() {
  return {"batch_norm",
          batch_norm_reference,
          {
              {.name = "odd", .inputs = {{DType::f32, {3, 5, 7, 3}}}},
              {.name = "features", .inputs = {{DType::f32, {9, 5}}}},
              {.name = "rest_of_a_block", .inputs = {{DType::f32, {71, 3}}}},
              {.name = "channels_16", .inputs = {{DType::f32, {2, 4, 3, 16}}}},
              {.name = "channels_119", .inputs = {{DType::f32, {2, 3, 3, 119}}}},
              {.name = "several_blocks", .inputs = {{DType::f32, {3, 21, 20, 16}}}},
              // 65 blocks, so that the blocks' sums are themselves added in blocks.
              {.name = "blocks_of_blocks", .inputs = {{DType::f32, {515, 1024}}}},
              {.name = "epsilon", .attributes = Attributes({{"epsilon", 0.5}}), .inputs = {{DType::f32, {2, 4, 4, 8}}}},
              {.name = "far_from_zero",
               .inputs = {{DType::f32, {2, 32, 20, 16}}},
               .tolerance = 1e-4,  // the precision that is left of the inputs' 24 bits
               .fill = far_away},
              {.name = "inference", .inputs = {{DType::f32, {2, 3, 4, 20}}}, .mode = Mode::inference},
              batch_norm_speed("32x32_16", {16, 32, 32, 16}),
              batch_norm_speed("16x16_32", {16, 16, 16, 32}),
              batch_norm_speed("8x8_64", {16, 8, 8, 64}),
              batch_norm_speed("112x112_64", {4, 112, 112, 64}),
              batch_norm_speed("56x56_256", {4, 56, 56, 256}),
              batch_norm_speed("7x7_2048", {4, 7, 7, 2048}),
          }};
}

}  // namespace lockstep::ops
