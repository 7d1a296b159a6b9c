// Kernels that add the gradient of their input to another one (Kernel::adds_input_gradient): with the bits of adding it
// afterwards, wherever the sum is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "device/gpu/element_kernels.hpp"
#include "lockstep/random.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

using Int = std::int64_t;
constexpr Int kTermRows = 3;

class InputGradientTerm : public testing::TestWithParam<std::tuple<const char*, DType, Int>> {
 protected:
  InputGradientTerm() {
    add_built_in(registry_);
    const OpDef& def = registry_.at(op_);
    attributes_ = complete(def.attributes, {}, op_);
    request_.attributes = &attributes_;
    request_.inputs = request_.outputs = {x_};
    const std::array<TensorSpec, 1> wide = {TensorSpec{DType::f32, x_.shape}};
    const Signature signature = def.infer(attributes_, wide);
    for (const auto& parameter : signature.parameters) request_.parameters.push_back({DType::f32, parameter.shape});
    request_.saved = signature.saved;
    kernel_ = host_grid_kernels().at(op_)(request_);
  }
  [[nodiscard]] Tensor random(const TensorSpec& spec, const char* name) const {
    Tensor made(spec);
    RandomStream random(hash_name(name), 0);
    std::vector<float> values(static_cast<std::size_t>(spec.elements()));
    for (float& value : values) value = static_cast<float>(random.between(-1, 1));
    device::with_element(spec.dtype, [&]<class T>(T /*element*/) {
      auto* to = reinterpret_cast<T*>(made.bytes());
      for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i];
    });
    return made;
  }
  /// backward into `dx`; `term` is null or added.
  void backward(const void* term, void* dx) {
    const Tensor x = random(x_, "x"), dy = random(x_, "dy");
    std::vector<Tensor> parameters, saved;
    for (const TensorSpec& spec : request_.parameters) parameters.push_back(random(spec, "parameter"));
    for (const TensorSpec& spec : request_.saved) saved.emplace_back(spec);
    Tensor y(x_);
    std::vector<std::byte> workspace(kernel_->workspace_bytes() + 8);
    std::vector<std::vector<float>> gradients;
    std::vector<const void*> parameter_list, saved_list;
    std::vector<void*> saved_to;
    std::vector<float*> gradient_list;
    for (const Tensor& parameter : parameters) {
      parameter_list.push_back(parameter.bytes());
      gradients.emplace_back(static_cast<std::size_t>(x_.shape.back()));
    }
    for (auto& gradient : gradients) gradient_list.push_back(gradient.data());
    for (Tensor& one : saved) {
      saved_to.push_back(one.bytes());
      saved_list.push_back(one.bytes());
    }
    const std::array<const void*, 1> inputs = {x.bytes()}, output_gradients = {dy.bytes()};
    const std::array<void*, 1> outputs = {y.bytes()}, input_gradients = {dx};
    kernel_->forward({.inputs = inputs,
                      .parameters = parameter_list,
                      .states = {},
                      .statistics = {},
                      .outputs = outputs,
                      .saved = saved_to,
                      .workspace = workspace.data()});
    kernel_->backward({.inputs = inputs,
                       .parameters = parameter_list,
                       .states = {},
                       .outputs = {},
                       .saved = saved_list,
                       .output_gradients = output_gradients,
                       .input_gradients = input_gradients,
                       .parameter_gradients = gradient_list,
                       .workspace = workspace.data(),
                       .input_gradient_term = term});
  }

  const char* op_ = std::get<0>(GetParam());
  TensorSpec x_{std::get<1>(GetParam()), {kTermRows, std::get<2>(GetParam())}};
  OpRegistry registry_;
  Attributes attributes_;
  KernelRequest request_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

TEST_P(InputGradientTerm, HasTheBitsOfAddingItAfterwards) {
  ASSERT_TRUE(kernel_->adds_input_gradient());
  const Tensor term = random(x_, "term");
  Tensor alone(x_), expected(x_), found(x_), over(x_);
  backward(nullptr, alone.bytes());
  device::launch_add<device::HostGrid>(nullptr, x_.dtype, term.bytes(), alone.bytes(), expected.bytes(), x_.elements());
  backward(term.bytes(), found.bytes());
  std::copy_n(term.bytes(), x_.bytes(), over.bytes());
  backward(over.bytes(), over.bytes());
  EXPECT_EQ(std::memcmp(found.bytes(), expected.bytes(), x_.bytes()), 0);
  EXPECT_EQ(std::memcmp(over.bytes(), expected.bytes(), x_.bytes()), 0) << "over the term";
}

INSTANTIATE_TEST_SUITE_P(Norms, InputGradientTerm,
                         testing::Combine(testing::Values("layer_norm", "rms_norm"),
                                          testing::Values(DType::f32, DType::bf16, DType::f16),
                                          testing::Values(37, 515, 768, 1001, 1024, 1100)));

}  // namespace lockstep::ops
