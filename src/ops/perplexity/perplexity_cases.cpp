#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// The sum that is reported, before the exponential.
ReferenceResult perplexity_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &target = call.inputs[1];
  const auto batch = static_cast<std::size_t>(x.shape[0]), classes = static_cast<std::size_t>(x.shape.back());
  DoubleTensor value{{x.shape[0]}, std::vector<double>(batch)}, count = value;
  for (std::size_t row = 0; row < target.values.size(); ++row) {
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(x.values[row * classes + k]);
    const double likelihood = std::exp(x.values[row * classes + static_cast<std::size_t>(target.values[row])]) / sum;
    value.values[row / (target.values.size() / batch)] -= std::log(likelihood);
    count.values[row / (target.values.size() / batch)] += 1;
  }
  return {{value, count}, {}};
}

}  // namespace

OpCases make_perplexity_cases() {
  return {"perplexity",
          perplexity_reference,
          {
              {.name = "sequence",
               .attributes = {},
               .inputs = {{DType::f32, {2, 5, 9}}, {DType::i32, {2, 5}}},
               .integer_bound = 9},
              {.name = "empty",
               .attributes = {},
               .inputs = {{DType::f32, {0, 5, 9}}, {DType::i32, {0, 5}}},
               .integer_bound = 9},
          }};
}

}  // namespace lockstep::ops
