#include "ops/activation_case.hpp"

namespace lockstep::ops {

namespace {

/// leaky_relu has a bend at 0, as relu: nothing that is so near to it that finite differences go over it.
void fill_off_the_bend(int /*index*/, Tensor& tensor) {
  float x = -2.05F;
  for (auto& value : tensor.as<float>()) value = (x = x > 2 ? x - 4.1F : x + 0.1F);
}

std::vector<OpCase> both_sides(const Attributes& attributes, const std::string& prefix) {
  return {
      {.name = prefix + "odd", .attributes = attributes, .inputs = {{DType::f32, {3, 37}}}, .fill = fill_off_the_bend},
      {.name = prefix + "empty", .attributes = attributes, .inputs = {{DType::f32, {0, 7}}}}};
}

std::vector<OpCase> leaky_relu_cases() {
  auto cases = both_sides({}, "");
  for (auto& steep : both_sides(Attributes({{"slope", 0.3}}), "steep_")) cases.push_back(std::move(steep));
  cases.push_back({.name = "flat",
                   .attributes = Attributes({{"slope", 0.0}}),
                   .inputs = {{DType::f32, {2, 19}}},
                   .fill = fill_off_the_bend});
  cases.push_back({.name = "speed", .attributes = {}, .inputs = {{DType::f32, {16, 32, 32, 16}}}, .benchmark = true});
  return cases;
}

std::vector<OpCase> elu_cases() {
  auto cases = activation_cases();
  for (auto& own : both_sides(Attributes({{"alpha", 0.4}}), "small_")) cases.push_back(std::move(own));
  return cases;
}

}  // namespace

OpCases make_leaky_relu_cases() {
  return {"leaky_relu",
          [](const ReferenceCall& call) {
            const auto slope = static_cast<double>(static_cast<float>(call.attributes.number("slope")));
            return elementwise_reference(call, [slope](double x) { return x > 0 ? x : slope * x; });
          },
          leaky_relu_cases()};
}

OpCases make_elu_cases() {
  return {"elu",
          [](const ReferenceCall& call) {
            const auto alpha = static_cast<double>(static_cast<float>(call.attributes.number("alpha")));
            return elementwise_reference(call, [alpha](double x) { return x > 0 ? x : alpha * std::expm1(x); });
          },
          elu_cases()};
}

}  // namespace lockstep::ops
