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

OpCases make_mul_cases() {
  return {"mul", [](const ReferenceCall& call) { return fold(call, std::multiplies<>()); }, fold_cases({1, 64, 512})};
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
