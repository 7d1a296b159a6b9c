#include <utility>
#include <vector>

#include "ops/activation_case.hpp"

namespace lockstep::ops {

namespace {

/// Folds over the inputs from left to right.
template <class Function>
ReferenceResult fold(const ReferenceCall& call, const Function& function) {
  DoubleTensor y = call.inputs[0];
  for (std::size_t input = 1; input < call.inputs.size(); ++input) {
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = function(y.values[i], call.inputs[input].values[i]);
  }
  return {{y}, {}};
}

std::vector<OpCase> fold_cases(const Shape& speed) {
  return {
      {.name = "two", .attributes = {}, .inputs = several(2, {3, 7})},
      {.name = "four", .attributes = {}, .inputs = several(4, {2, 5, 3})},
      {.name = "empty", .attributes = {}, .inputs = several(2, {0, 7})},
      {.name = "speed", .attributes = {}, .inputs = several(2, speed), .benchmark = true},
  };
}

}  // namespace

OpCases make_add_cases() {
  return {"add", [](const ReferenceCall& call) { return fold(call, std::plus<>()); }, fold_cases({16, 32, 32, 16})};
}

/// Each channel of a sample times its own factor.
ReferenceResult product_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &factors = call.inputs[1];
  if (x.values.size() == factors.values.size()) return fold(call, std::multiplies<>());
  DoubleTensor y = x;
  const std::size_t channels = x.shape.back();
  const std::size_t per_sample = x.values.size() / x.shape.front();
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    y.values[i] *= factors.values[i / per_sample * channels + i % channels];
  }
  return {{y}, {}};
}

OpCases make_mul_cases() {
  std::vector<OpCase> cases = fold_cases({1, 64, 512});
  const auto with_factors = [&](const char* name, const Shape& x, const Shape& factors, bool benchmark = false) {
    cases.push_back(
        {.name = name, .attributes = {}, .inputs = {{DType::f32, x}, {DType::f32, factors}}, .benchmark = benchmark});
  };
  with_factors("channel_factors", {3, 5, 7, 6}, {3, 6});
  with_factors("channel_factors_of_four_dimensions", {2, 3, 4, 19}, {2, 1, 1, 19});
  with_factors("channel_factors_of_tokens", {4, 70, 3}, {4, 3});
  with_factors("channel_factors_of_one_pixel", {3, 1, 1, 5}, {3, 5});
  with_factors("channel_factors_empty", {0, 5, 7, 6}, {0, 6});
  with_factors("channel_factors_speed", {8, 28, 28, 64}, {8, 64}, true);
  return {"mul", product_reference, std::move(cases)};
}

OpCases make_sub_cases() {
  return {"sub",
          [](const ReferenceCall& call) { return fold(call, std::minus<>()); },
          {
              {.name = "odd", .attributes = {}, .inputs = several(2, {3, 7})},
              {.name = "images", .attributes = {}, .inputs = several(2, {2, 5, 3, 4})},
              {.name = "empty", .attributes = {}, .inputs = several(2, {0, 7})},
              {.name = "speed", .attributes = {}, .inputs = several(2, {1, 64, 512}), .benchmark = true},
          }};
}

OpCases make_scale_cases() {
  std::vector<OpCase> cases = activation_cases(Attributes({{"factor", -0.3}}));
  for (OpCase& shifted : activation_cases(Attributes({{"factor", 1.7}, {"shift", -0.6}}), "shifted_")) {
    if (!shifted.benchmark) cases.push_back(std::move(shifted));
  }
  return {"scale",
          [](const ReferenceCall& call) {
            const auto number = [&](const char* name) {
              return call.attributes.has(name) ? static_cast<double>(static_cast<float>(call.attributes.number(name)))
                                               : 0;
            };
            const double factor = number("factor"), shift = number("shift");
            return elementwise_reference(call, [=](double x) { return factor * x + shift; });
          },
          std::move(cases)};
}

}  // namespace lockstep::ops
