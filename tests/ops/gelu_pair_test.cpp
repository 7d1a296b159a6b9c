// linear_gelu and gelu_linear together against the three ops that they replace: in fp32 they have the bits of linear,
// gelu and linear in sequence, with the CPU's kernels and with those over a grid.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/op_driver.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

using Bytes = KernelRun::Bytes;

class GeluPair : public testing::Test {
 protected:
  GeluPair() { add_built_in(registry_); }

  [[nodiscard]] Problem problem(const std::string& op, const std::vector<TensorSpec>& inputs,
                                std::int64_t features = 0) const {
    OpCase one{.name = "pair", .attributes = {}, .inputs = inputs};
    if (features > 0) one.attributes = Attributes({{"features", features}});
    return make_problem(registry_.at(op), one);
  }
  static void set(Tensor& tensor, const Bytes& bytes) { std::copy(bytes.begin(), bytes.end(), tensor.bytes()); }
  static void set(Tensor& tensor, const Tensor& other) {
    std::copy_n(other.bytes(), other.spec().bytes(), tensor.bytes());
  }

  void expect_same_bits(const std::map<std::string, KernelFactory>& kernels) const {
    const TensorSpec narrow{DType::f32, {3, 4, 10}}, wide{DType::f32, {3, 4, 40}};
    Problem up = problem("linear", {narrow}, 40), gelu = problem("gelu", {wide}), down = problem("linear", {wide}, 10);
    Problem fused_up = problem("linear_gelu", {narrow}, 40), fused_down = problem("gelu_linear", {wide, wide}, 10);
    set(fused_up.inputs[0], up.inputs[0]);
    for (std::size_t i = 0; i < 2; ++i) {
      set(fused_up.parameters[i], up.parameters[i]);
      set(fused_down.parameters[i], down.parameters[i]);
    }
    set(fused_down.output_gradients[0], down.output_gradients[0]);

    const auto make = [&](const Problem& of) { return of.make_kernel(kernels.at(of.op->name)); };
    const auto up_kernel = make(up), gelu_kernel = make(gelu), down_kernel = make(down);
    const auto fused_up_kernel = make(fused_up), fused_down_kernel = make(fused_down);
    KernelRun first(up);
    first.forward(*up_kernel);
    set(gelu.inputs[0], first.outputs()[0]);
    KernelRun second(gelu);
    second.forward(*gelu_kernel);
    set(down.inputs[0], second.outputs()[0]);
    KernelRun third(down);
    third.forward(*down_kernel);
    third.backward(*down_kernel);
    set(gelu.output_gradients[0], third.input_gradients()[0]);
    KernelRun back(gelu);
    back.forward(*gelu_kernel);
    back.backward(*gelu_kernel);
    set(up.output_gradients[0], back.input_gradients()[0]);
    KernelRun last(up);
    last.forward(*up_kernel);
    last.backward(*up_kernel);

    KernelRun fused_first(fused_up);
    fused_first.forward(*fused_up_kernel);
    EXPECT_TRUE(fused_first.outputs() == (std::vector<Bytes>{first.outputs()[0], second.outputs()[0]}));
    set(fused_down.inputs[0], fused_first.outputs()[1]);
    set(fused_down.inputs[1], fused_first.outputs()[0]);
    KernelRun fused_second(fused_down);
    fused_second.forward(*fused_down_kernel);
    EXPECT_TRUE(fused_second.outputs() == third.outputs());
    fused_second.backward(*fused_down_kernel);
    EXPECT_TRUE(fused_second.input_gradients()[1] == back.input_gradients()[0]);
    EXPECT_TRUE(fused_second.parameter_gradients() == third.parameter_gradients());
    set(fused_up.output_gradients[0], fused_second.input_gradients()[1]);
    KernelRun fused_last(fused_up);
    fused_last.forward(*fused_up_kernel);
    fused_last.backward(*fused_up_kernel);
    EXPECT_TRUE(fused_last.input_gradients() == last.input_gradients());
    EXPECT_TRUE(fused_last.parameter_gradients() == last.parameter_gradients());
  }

  OpRegistry registry_;
};

}  // namespace

TEST_F(GeluPair, HasTheBitsOfThreeOpsOnTheCpu) {
  std::map<std::string, KernelFactory> kernels;
  for (const OpDef* op : registry_.all()) {
    if (!op->view) kernels[op->name] = op->kernels.at(DeviceKind::cpu);
  }
  expect_same_bits(kernels);
}

TEST_F(GeluPair, HasTheBitsOfThreeOpsOverAGrid) {
  expect_same_bits(host_grid_kernels());
}

}  // namespace lockstep::ops
