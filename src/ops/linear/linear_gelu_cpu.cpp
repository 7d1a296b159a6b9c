// linear_gelu and gelu_linear, by the kernels of linear and gelu.
#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/lanes.hpp"
#include "ops/elementwise.hpp"
#include "ops/gelu/gelu_formulas.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_linear_cpu(const KernelRequest& request);
std::unique_ptr<Kernel> make_gelu_cpu(const KernelRequest& request);

namespace {

using device::kLanes;
using device::Lanes;

std::unique_ptr<Kernel> gelu_of(const TensorSpec& pre) {
  const Attributes attributes({{"approximate", std::string("tanh")}});
  KernelRequest request;
  request.attributes = &attributes;
  request.mode = Mode::inference;  // no slope is saved: gelu_linear computes it
  request.inputs = request.outputs = {pre};
  return make_gelu_cpu(request);
}

/// The kernels of linear and of gelu, one after the other.
class LinearGeluCpu final : public Kernel {
 public:
  explicit LinearGeluCpu(const KernelRequest& request)
      : linear_(make_linear_cpu(request)), gelu_(gelu_of(request.outputs[0])) {}

  std::size_t workspace_bytes() const override {
    return std::max(linear_->workspace_bytes(), gelu_->workspace_bytes());
  }

  std::size_t kept_bytes() const override { return linear_->kept_bytes(); }

  void forward(const ForwardCall& call) override {
    linear_->forward(call);
    const void* const pre = call.outputs[0];
    ForwardCall of_gelu = call;
    of_gelu.inputs = {&pre, 1};
    of_gelu.outputs = call.outputs.subspan(1);
    gelu_->forward(of_gelu);
  }
  void backward(const BackwardCall& call) override { linear_->backward(call); }
  bool adds_gradient(std::size_t parameter) const override { return linear_->adds_gradient(parameter); }

 private:
  std::unique_ptr<Kernel> linear_, gelu_;
};

/// gradient[i] *= gelu'(pre[i])
LOCKSTEP_VECTORIZED void multiply_slope(const float* pre, float* gradient, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t count = n - i < kLanes ? n - i : kLanes;
    Lanes x, g;
    device::load_some(x, pre + i, count);
    device::load_some(g, gradient + i, count);
    device::store_some(gradient + i, g * GeluTanh::slope(x, GeluTanh::phi(x)), count);
  }
}

/// The kernel of linear; the gradient is multiplied in place by gelu's slope.
class GeluLinearCpu final : public Kernel {
 public:
  explicit GeluLinearCpu(const KernelRequest& request)
      : linear_(make_linear_cpu(request)), n_(request.inputs[1].elements()) {}

  std::size_t workspace_bytes() const override { return linear_->workspace_bytes(); }

  std::size_t kept_bytes() const override { return linear_->kept_bytes(); }

  void forward(const ForwardCall& call) override { linear_->forward(call); }
  void backward(const BackwardCall& call) override {
    BackwardCall of_linear = call;
    of_linear.input_gradients = call.input_gradients.subspan(1);
    linear_->backward(of_linear);
    if (float* dpre = input_gradient(call, 1); dpre != nullptr) multiply_slope(input(call, 1), dpre, n_);
  }
  bool adds_gradient(std::size_t parameter) const override { return linear_->adds_gradient(parameter); }

 private:
  std::unique_ptr<Kernel> linear_;
  std::int64_t n_;
};

}  // namespace

std::unique_ptr<Kernel> make_linear_gelu_cpu(const KernelRequest& request) {
  return std::make_unique<LinearGeluCpu>(request);
}

std::unique_ptr<Kernel> make_gelu_linear_cpu(const KernelRequest& request) {
  return std::make_unique<GeluLinearCpu>(request);
}

}  // namespace lockstep::ops
