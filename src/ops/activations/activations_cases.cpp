// The table's cases: one reference for each, in double.
#include "ops/activation_case.hpp"
#include "ops/activations/activations.hpp"

namespace lockstep::ops {

namespace {

double reference(Sigmoid /*formula*/, double x) {
  return 1 / (1 + std::exp(-x));
}
double reference(Silu /*formula*/, double x) {
  return x / (1 + std::exp(-x));
}
double reference(Tanh /*formula*/, double x) {
  return std::tanh(x);
}

template <class Formula>
OpCases cases_of(const std::string& op) {
  return {op,
          [](const ReferenceCall& call) {
            return elementwise_reference(call, [](double x) { return reference(Formula{}, x); });
          },
          activation_cases()};
}

}  // namespace

#define LOCKSTEP_MAKE_CASES(Formula, op) \
  OpCases make_##op##_cases() {          \
    return cases_of<Formula>(#op);       \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_MAKE_CASES)
#undef LOCKSTEP_MAKE_CASES

}  // namespace lockstep::ops
