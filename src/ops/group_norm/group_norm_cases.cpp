#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// Of the channels `first` to `first + width - 1` of a sample.
void normalize_group(const ReferenceCall& call, std::size_t sample, std::size_t first, std::size_t width,
                     DoubleTensor& y) {
  const DoubleTensor& x = call.inputs[0];
  const std::size_t channels = x.shape.back();
  const std::size_t of_sample = x.values.size() / x.shape[0];
  const auto each = [&](const auto& use) {
    for (std::size_t at = 0; at < of_sample; ++at) {
      const std::size_t channel = at % channels;
      if (channel >= first && channel < first + width) use(sample * of_sample + at, channel);
    }
  };
  const std::size_t elements = of_sample / channels * width;
  const double n = elements;
  double mean = 0, variance = 0;
  each([&](std::size_t at, std::size_t) { mean += x.values[at] / n; });
  each([&](std::size_t at, std::size_t) { variance += (x.values[at] - mean) * (x.values[at] - mean) / n; });
  each([&](std::size_t at, std::size_t channel) {
    const double z = (x.values[at] - mean) / std::sqrt(variance + call.attributes.number("epsilon"));
    const bool affine = !call.parameters.empty();
    y.values[at] = affine ? z * call.parameters[0].values[channel] + call.parameters[1].values[channel] : z;
  });
}

ReferenceResult group_norm_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  DoubleTensor y = x;
  const std::size_t channels = x.shape.back();
  const std::size_t groups =
      call.attributes.has("groups") ? static_cast<std::size_t>(call.attributes.integer("groups")) : channels;
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(x.shape[0]); ++sample) {
    for (std::size_t group = 0; group < groups; ++group) {
      normalize_group(call, sample, group * (channels / groups), channels / groups, y);
    }
  }
  return {{y}, {}};
}

}  // namespace

OpCases make_group_norm_cases() {
  const auto groups = [](std::int64_t count) { return Attributes({{"groups", count}}); };
  Attributes plain = groups(2), epsilon = groups(3);
  plain.set("affine", false);
  epsilon.set("epsilon", 0.1);
  return {"group_norm",
          group_norm_reference,
          {
              {.name = "odd", .attributes = groups(3), .inputs = {{DType::f32, {2, 5, 3, 9}}}},
              {.name = "plain", .attributes = plain, .inputs = {{DType::f32, {2, 3, 4, 6}}}},
              {.name = "epsilon", .attributes = epsilon, .inputs = {{DType::f32, {2, 7, 6}}}},
              {.name = "one_group", .attributes = groups(1), .inputs = {{DType::f32, {3, 4, 5}}}},
              {.name = "features", .attributes = groups(4), .inputs = {{DType::f32, {3, 20}}}},
              {.name = "blocks_of_rows", .attributes = groups(2), .inputs = {{DType::f32, {2, 67, 38}}}},
              {.name = "empty", .attributes = groups(2), .inputs = {{DType::f32, {0, 3, 4}}}},
              {.name = "speed", .attributes = {}, .inputs = {{DType::f32, {8, 16, 16, 64}}}, .benchmark = true},
          }};
}

OpCases make_instance_norm_cases() {
  const Attributes affine({{"affine", true}}), epsilon({{"epsilon", 0.1}});
  return {"instance_norm",
          group_norm_reference,
          {
              {.name = "odd", .attributes = {}, .inputs = {{DType::f32, {2, 5, 3, 7}}}},
              {.name = "affine", .attributes = affine, .inputs = {{DType::f32, {2, 4, 3, 5}}}},
              {.name = "epsilon", .attributes = epsilon, .inputs = {{DType::f32, {2, 7, 6}}}},
              {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 3, 4}}}},
              {.name = "speed", .attributes = {}, .inputs = {{DType::f32, {8, 16, 16, 64}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
