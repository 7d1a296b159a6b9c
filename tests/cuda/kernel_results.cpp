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

/// The same where the kernel may write over what it reads.
void add_results_in_place(const Problem& problem, Kernel& kernel, Results& results) {
  const InPlace& allowed = problem.op->in_place;
  const bool of_one_size = problem.input_specs[0] == problem.signature.outputs[0];
  const auto run = [&](const char* over, bool backward, Over what) {
    KernelRun in_place(problem);
    in_place.forward(kernel, backward ? Over::junk : what);
    if (backward) in_place.backward(kernel, what);
    EXPECT_EQ(in_place.damage(), "");
    results.push_back({fmt::format("{} over {}", backward ? "input gradient" : "output", over), problem.input_specs[0],
                       backward ? in_place.input_gradients()[0] : in_place.outputs()[0]});
  };
  if (allowed.forward && of_one_size) {
    run("input 0", false, Over::first_input);
    const auto& inputs = problem.input_specs;
    if (inputs.size() == 2 && inputs[1] == problem.signature.outputs[0]) run("input 1", false, Over::second_input);
  }
  if (!problem.trains()) return;
  if (allowed.over_gradient && of_one_size) run("the output's", true, Over::gradient);
  if (allowed.over_input) run("the input", true, Over::first_input);
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
  add_results_in_place(problem, kernel, results);
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
  for (const NamedResult& a : expected) {  // a kernel may have more, which the other one cannot do
    const auto same = std::ranges::find(found, a.name, &NamedResult::name);
    if (same == found.end()) return a.name + " is missing";
    const NamedResult& b = *same;
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
