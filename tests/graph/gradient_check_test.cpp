// check_gradient(): a right gradient passes, and each kind of wrong one is named.
#include "lockstep/gradient_check.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

struct Faults {
  bool input = false, parameter = false, forgets_last = false, undeclared = false;
};

/// y = w * x * x, for each of x's columns a w.
class Square final : public Kernel {
 public:
  Square(const KernelRequest& request, Faults faults)
      : elements_(request.outputs[0].elements()), columns_(request.parameters[0].shape[0]), faults_(faults) {}

  void forward(const ForwardCall& call) override {
    const auto *x = static_cast<const float*>(call.inputs[0]), *w = static_cast<const float*>(call.parameters[0]);
    auto* const y = static_cast<float*>(call.outputs[0]);
    for (std::int64_t i = 0; i < elements_; ++i) y[i] = w[i % columns_] * x[i] * x[i];
  }

  void backward(const BackwardCall& call) override {
    const auto *x = static_cast<const float*>(call.inputs[0]), *w = static_cast<const float*>(call.parameters[0]);
    const auto* const dy = static_cast<const float*>(call.output_gradients[0]);
    auto* const dx = static_cast<float*>(call.input_gradients[0]);
    float* const dw = call.parameter_gradients[0];
    for (std::int64_t c = 0; c < columns_; ++c) dw[c] = 0;
    for (std::int64_t i = 0; i < elements_; ++i) {
      if (!faults_.forgets_last || i + 1 < elements_) dx[i] = dy[i] * w[i % columns_] * (faults_.input ? 1 : 2) * x[i];
      dw[i % columns_] += dy[i] * x[i] * x[i] + (faults_.parameter ? 0.1F : 0);
    }
  }

 private:
  std::int64_t elements_, columns_;
  Faults faults_;
};

OpDef square(Faults faults = {}) {
  OpDef op;
  op.name = "square";
  op.backward_reads = {.inputs = !faults.undeclared, .outputs = false};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    return Signature{.outputs = {inputs[0]},
                     .parameters = {{.name = "weight", .shape = {inputs[0].shape.back()}, .initializer = {}}},
                     .states = {},
                     .saved = {}};
  };
  op.kernels[DeviceKind::cpu] = [faults](const KernelRequest& request) {
    return std::make_unique<Square>(request, faults);
  };
  return op;
}

double check(const OpDef& op) {
  GradientCheck at;
  at.inputs.emplace_back(TensorSpec{DType::f32, {4, 3}});
  float value = -1;
  for (float& x : at.inputs[0].as<float>()) x = value += 0.17F;
  return check_gradient(op, std::move(at));
}

std::string problem_of(const OpDef& op) {
  try {
    (void)check(op);
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
}

void expect_begins(const std::string& text, const std::string& begin) {
  EXPECT_EQ(text.substr(0, begin.size()), begin) << text;
}

}  // namespace

TEST(CheckGradient, FindsARightOneRight) {
  EXPECT_LT(check(square()), 1e-4);
}

TEST(CheckGradient, NamesTensorAndElement) {
  expect_begins(problem_of(square({.input = true})), "op 'square', input 0, element 0: expected the gradient ");
  expect_begins(problem_of(square({.parameter = true})), "op 'square', weight, element 0: expected the gradient ");
  expect_begins(problem_of(square({.forgets_last = true})), "op 'square', input 0, element 11: expected a finite ");
  expect_begins(problem_of(square({.undeclared = true})), "op 'square', input 0, element 0: expected a finite ");
}

TEST(CheckGradient, IsOfOpsThatHaveOne) {
  OpDef op = square();
  op.differentiable = false;
  EXPECT_EQ(problem_of(op), "the op 'square' is not differentiable");
}

TEST(Registries, RefuseWhatIsNotWhole) {
  OpRegistry ops;
  const auto added = [&](OpDef op) -> std::string {
    try {
      ops.add(std::move(op));
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
  };
  OpDef op = square();
  op.infer = nullptr;
  EXPECT_EQ(added(op), "the op 'square': expected `infer` to be set");
  EXPECT_EQ(added(square()), "");
  EXPECT_EQ(added(square()), "the op 'square' is registered twice");
}

}  // namespace lockstep
