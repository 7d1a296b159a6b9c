// Cases of the activations in the table: one reference for each, in double.
#include <algorithm>

#include "ops/activation_case.hpp"
#include "ops/activations/activations.hpp"

namespace lockstep::ops {

namespace {

double reference(Elu formula, double x) {
  return x > 0 ? x : double{formula.alpha} * std::expm1(x);
}
double reference(Hardswish /*formula*/, double x) {
  return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
}
double reference(LeakyRelu formula, double x) {
  return x > 0 ? x : double{formula.slope} * x;
}
double reference(Relu /*formula*/, double x) {
  return x > 0 ? x : 0;
}
double reference(Relu6 /*formula*/, double x) {
  return std::min(std::max(x, 0.0), 6.0);
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

/// leaky_relu, relu and relu6 have a bend at 0: nothing that is so near to it that finite differences cross it.
void fill_off_the_bend(int /*index*/, Tensor& tensor) {
  float x = -2.05F;
  for (auto& value : tensor.as<float>()) value = (x = x > 2 ? x - 4.1F : x + 0.1F);
}

/// Also where exponentials of floats end, at 88.
void fill_far(int /*index*/, Tensor& tensor) {
  float x = -147;
  for (auto& value : tensor.as<float>()) value = x += 27;
}

/// By type: the formula of a case is constructed from its attributes.
template <class Formula>
struct CasesOf {
  static std::vector<OpCase> all() { return activation_cases(); }
};
template <>
struct CasesOf<Silu> {
  static std::vector<OpCase> all() {
    auto cases = activation_cases();
    cases.push_back({.name = "far", .inputs = {{DType::f32, {2, 5}}}, .fill = fill_far});
    return cases;
  }
};
template <>
struct CasesOf<Elu> {
  static std::vector<OpCase> all() {
    auto cases = activation_cases();
    cases.push_back({.name = "small",
                     .attributes = Attributes({{"alpha", 0.4}}),
                     .inputs = {{DType::f32, {3, 37}}},
                     .fill = fill_wide});
    return cases;
  }
};
template <>
struct CasesOf<LeakyRelu> {
  static std::vector<OpCase> all() {
    const std::vector<TensorSpec> odd = {{DType::f32, {3, 37}}};
    return {
        {.name = "odd", .attributes = {}, .inputs = odd, .fill = fill_off_the_bend},
        {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 7}}}},
        {.name = "steep", .attributes = Attributes({{"slope", 0.3}}), .inputs = odd, .fill = fill_off_the_bend},
        {.name = "flat", .attributes = Attributes({{"slope", 0.0}}), .inputs = odd, .fill = fill_off_the_bend},
        {.name = "speed", .attributes = {}, .inputs = {{DType::f32, {16, 32, 32, 16}}}, .benchmark = true},
    };
  }
};
/// Without the wide inputs: some are too close to the bend.
template <>
struct CasesOf<Relu> {
  static std::vector<OpCase> all() {
    return {
        {.name = "odd", .attributes = {}, .inputs = {{DType::f32, {3, 7}}}},
        {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 7}}}},
        {.name = "image", .attributes = {}, .inputs = {{DType::f32, {2, 5, 3, 4}}}},
        {.name = "speed", .attributes = {}, .inputs = {{DType::f32, {16, 32, 32, 16}}}, .benchmark = true},
    };
  }
};

/// Far enough out to see both bends.
template <>
struct CasesOf<Relu6> {
  static std::vector<OpCase> all() {
    return {
        {.name = "odd",
         .attributes = {},
         .inputs = {{DType::f32, {3, 37}}},
         .fill =
             [](int index, Tensor& tensor) {
               fill_off_the_bend(index, tensor);
               for (auto& value : tensor.as<float>()) value *= 5;
             }},
        {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 7}}}},
        {.name = "speed", .attributes = {}, .inputs = {{DType::f32, {16, 32, 32, 16}}}, .benchmark = true},
    };
  }
};

template <class Formula>
OpCases cases_of(const std::string& op) {
  return {op,
          [](const ReferenceCall& call) {
            const auto formula = formula_of<Formula>(call.attributes);
            return elementwise_reference(call, [&](double x) { return reference(formula, x); });
          },
          CasesOf<Formula>::all()};
}

}  // namespace

#define LOCKSTEP_MAKE_CASES(Formula, op) \
  OpCases make_##op##_cases() {          \
    return cases_of<Formula>(#op);       \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_MAKE_CASES)
#undef LOCKSTEP_MAKE_CASES

}  // namespace lockstep::ops
