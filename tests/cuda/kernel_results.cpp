#include "cuda/kernel_results.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace lockstep::ops {

namespace {

std::vector<TensorSpec> specs_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back({DType::f32, tensor.shape()});
  return specs;
}

/// NaNs have different bits on a GPU than on the CPU.
bool has_one_value(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

}  // namespace

Results results_of(const Problem& problem, Kernel& kernel) {
  KernelRun run(problem);
  run.forward(kernel);
  if (problem.trains()) run.backward(kernel);
  EXPECT_EQ(run.damage(), "");
  Results results;
  const auto add = [&](const char* what, const std::vector<KernelRun::Bytes>& tensors,
                       const std::vector<TensorSpec>& specs) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      results.push_back({fmt::format("{} {}", what, i), specs.at(i), tensors[i]});
    }
  };
  add("output", run.outputs(), problem.signature.outputs);
  add("statistic", run.statistics(), specs_of(problem.states));
  if (problem.trains()) {
    const auto gradients = run.input_gradients();  // junk for inputs that want no gradient
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!problem.makes_gradient(i)) continue;
      results.push_back({fmt::format("input gradient {}", i), problem.input_specs[i], gradients[i]});
    }
    add("parameter gradient", run.parameter_gradients(), specs_of(problem.parameters));
    if (kernel.adds_input_gradient() || kernel.adds_output_gradients()) {
      KernelRun of_two_terms(problem, {.second_term = true});
      of_two_terms.forward(kernel);
      of_two_terms.backward(kernel);
      EXPECT_EQ(of_two_terms.damage(), "");
      results.push_back({"input gradient of two terms", problem.input_specs[0], of_two_terms.input_gradients()[0]});
    }
  }
  return results;
}

Results rounded_gradient(const Problem& problem, Kernel& kernel) {
  KernelRun run(problem);
  run.forward(kernel);
  run.backward(kernel);
  EXPECT_EQ(run.damage(), "");
  const auto gradient = run.input_gradients()[0];
  return {{"rounded gradient", {DType::bf16, {static_cast<std::int64_t>(gradient.size() / 2)}}, gradient}};
}

std::string difference(const Results& expected, const Results& found, double tolerance, double floor) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const NamedResult &a = expected[i], &b = found.at(i);
    if (a.bytes == b.bytes) continue;
    const auto x = to_doubles(a.bytes, a.spec).values, y = to_doubles(b.bytes, b.spec).values;
    if (tolerance == 0) {
      if (std::ranges::equal(x, y, has_one_value)) continue;
      return a.name + " has other bits";
    }
    double largest = 0;
    for (const double value : x) largest = std::max(largest, std::abs(value));
    for (std::size_t e = 0; e < x.size(); ++e) {
      const bool close = x[e] == y[e] || std::abs(x[e] - y[e]) <= tolerance * (floor + largest);
      if (!close) return fmt::format("{}, element {}: expected {}, found {}", a.name, e, x[e], y[e]);
    }
  }
  return "";
}

}  // namespace lockstep::ops
