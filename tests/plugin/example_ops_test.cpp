// The ops of the example's plugin, as the program gets them: from its shared library. Against their references in
// double, and their gradients against finite differences.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/finite_difference.hpp"
#include "ops/op_case_fixture.hpp"
#include "run/train/plugins.hpp"

namespace lockstep::ops {

namespace {

double softplus(double x) {
  return std::log1p(std::exp(x));
}

ReferenceResult mish(const ReferenceCall& call) {
  DoubleTensor y = call.inputs[0];
  for (double& value : y.values) value *= std::tanh(softplus(value));
  return {{y}, {}};
}

/// `of`: a prediction and its target.
template <class Function>
ReferenceResult by_element(const ReferenceCall& call, Function of) {
  const DoubleTensor &x = call.inputs[0], &t = call.inputs[1];
  const std::int64_t samples = x.shape[0];
  const std::size_t size = samples == 0 ? 0 : x.values.size() / static_cast<std::size_t>(samples);
  DoubleTensor values{{samples}, {}}, counts{{samples}, {}};
  for (std::size_t at = 0; at < x.values.size(); at += size) {
    double value = 0;
    for (std::size_t i = at; i < at + size; ++i) value += of(x.values[i], t.values[i]);
    values.values.push_back(value);
    counts.values.push_back(static_cast<double>(size));
  }
  return {{values, counts}, {}};
}

ReferenceResult log_cosh(const ReferenceCall& call) {
  const double width = call.attributes.number("width");
  return by_element(call, [width](double x, double t) { return width * width * std::log(std::cosh((x - t) / width)); });
}

ReferenceResult percent_error(const ReferenceCall& call) {
  return by_element(call, [](double x, double t) { return 100 * std::abs((x - t) / t); });
}

const std::vector<OpCases>& example_cases() {
  const TensorSpec column{DType::f32, {7, 1}}, targets{DType::f32, {7}}, matrix{DType::f32, {3, 5}};
  const auto far = [](int /*index*/, Tensor& tensor) {
    for (float& value : tensor.as<float>()) value = 30 * value;
  };
  static const std::vector<OpCases> cases = {
      {"mish",
       mish,
       {{.name = "odd", .attributes = {}, .inputs = {{DType::f32, {3, 37}}}},
        {.name = "far", .attributes = {}, .inputs = {{DType::f32, {2, 3, 5}}}, .fill = far},
        {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 7}}}}}},
      {"log_cosh",
       log_cosh,
       {{.name = "column", .attributes = {}, .inputs = {column, targets}},
        {.name = "narrow", .attributes = Attributes({{"width", 0.1}}), .inputs = {matrix, matrix}, .fill = far},
        {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 1}}, {DType::f32, {0}}}}}},
      {"percent_error", percent_error, {{.name = "column", .attributes = {}, .inputs = {column, targets}}}},
  };
  return cases;
}

/// By its absolute path, as ctest's working directory may be any.
const Registries& with_the_plugin() {
  static const Registries registries = [] {
    Registries all = Registries::built_in();
    train::open_plugins({{PENDULUM, {}}}, all);
    return all;
  }();
  return registries;
}

}  // namespace

TEST(ExamplePlugin, ItsOpsAreTheirReferencesAndHaveTheirGradients) {
  for (const OpCases& cases : example_cases()) {
    for (const OpCase& the_case : cases.cases) {
      SCOPED_TRACE(fmt::format("{} {}", cases.op, the_case.name));
      const Problem problem = make_problem(with_the_plugin().ops.at(cases.op), the_case);
      Objective objective(cases, problem);
      KernelRun run(problem);
      compute(*problem.make_kernel(), run, problem);
      const ReferenceResult expected = objective.outputs();
      for (std::size_t i = 0; i < run.outputs().size(); ++i) {
        expect_close(to_doubles(run.outputs()[i], problem.signature.outputs[i]), expected.outputs[i],
                     the_case.tolerance, fmt::format("output {}", i));
      }
      if (!problem.trains()) continue;
      const DoubleTensor got = to_doubles(run.input_gradients()[0], problem.input_specs[0]);
      DoubleTensor slopes{got.shape, {}};
      for (std::size_t k = 0; k < got.values.size(); ++k) slopes.values.push_back(objective.input_slope(0, k));
      expect_close(got, slopes, the_case.gradient_tolerance, "gradient");
    }
  }
}

TEST(ExamplePlugin, IsOpenedOnceForEachContent) {
  Registries registries = Registries::built_in();
  train::open_plugins({{PENDULUM, {}}, {PENDULUM, {}}}, registries);
  ASSERT_EQ(registries.plugins.size(), 1U);
  EXPECT_EQ(train::plugins_text(registries.plugins),
            fmt::format("libpendulum.so {}", registries.plugins[0].sha256.substr(0, 16)));
}

}  // namespace lockstep::ops
