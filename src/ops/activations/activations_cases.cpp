// Cases of the activations in the table: one reference for each, in double.
#include <algorithm>

#include "ops/activation_case.hpp"
#include "ops/activations/activations.hpp"

namespace lockstep::ops {

namespace {

double reference(Hardswish /*formula*/, double x) {
  return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
}
double reference(Relu /*formula*/, double x) {
  return x > 0 ? x : 0;
}
double reference(Sigmoid /*formula*/, double x) {
  return 1 / (1 + std::exp(-x));
}
double reference(Silu /*formula*/, double x) {
  return x / (1 + std::exp(-x));
}
double reference(Softplus /*formula*/, double x) {
  return std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0);
}
double reference(Tanh /*formula*/, double x) {
  return std::tanh(x);
}

/// Without the wide inputs: some are so close to relu's kink that finite differences would cross it.
std::vector<OpCase> cases(Relu /*formula*/) {
  return {
      {.name = "odd", .attributes = {}, .inputs = {{DType::f32, {3, 7}}}},
      {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 7}}}},
      {.name = "image", .attributes = {}, .inputs = {{DType::f32, {2, 5, 3, 4}}}},
      {.name = "speed", .attributes = {}, .inputs = {{DType::f32, {16, 32, 32, 16}}}, .benchmark = true},
  };
}
template <class Formula>
std::vector<OpCase> cases(Formula /*formula*/) {
  return activation_cases();
}

template <class Formula>
OpCases cases_of(const std::string& op) {
  return {op,
          [](const ReferenceCall& call) {
            return elementwise_reference(call, [](double x) { return reference(Formula{}, x); });
          },
          cases(Formula{})};
}

}  // namespace

#define LOCKSTEP_MAKE_CASES(Formula, op) \
  OpCases make_##op##_cases() {          \
    return cases_of<Formula>(#op);       \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_MAKE_CASES)
#undef LOCKSTEP_MAKE_CASES

}  // namespace lockstep::ops
