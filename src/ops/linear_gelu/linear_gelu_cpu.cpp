// The CPU's kernels of linear and of gelu, one after the other.
#include <algorithm>
#include <memory>

#include "lockstep/op.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_linear_cpu(const KernelRequest& request);
std::unique_ptr<Kernel> make_gelu_cpu(const KernelRequest& request);

namespace {

std::unique_ptr<Kernel> gelu_of(const TensorSpec& pre) {
  const Attributes attributes({{"approximate", std::string("tanh")}});
  KernelRequest request;
  request.attributes = &attributes;
  request.mode = Mode::inference;  // no slope: gelu_linear makes it
  request.inputs = request.outputs = {pre};
  return make_gelu_cpu(request);
}

class LinearGeluCpu final : public Kernel {
 public:
  explicit LinearGeluCpu(const KernelRequest& request)
      : linear_(make_linear_cpu(request)), gelu_(gelu_of(request.outputs[0])) {}

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return std::max(linear_->workspace_bytes(), gelu_->workspace_bytes());
  }

  void forward(const ForwardCall& call) override {
    linear_->forward(call);
    const void* const pre = call.outputs[0];
    ForwardCall of_gelu = call;
    of_gelu.inputs = {&pre, 1};
    of_gelu.outputs = call.outputs.subspan(1);
    gelu_->forward(of_gelu);
  }
  void backward(const BackwardCall& call) override { linear_->backward(call); }
  [[nodiscard]] bool adds_gradient(std::size_t parameter) const override { return linear_->adds_gradient(parameter); }

 private:
  std::unique_ptr<Kernel> linear_, gelu_;
};

}  // namespace

std::unique_ptr<Kernel> make_linear_gelu_cpu(const KernelRequest& request) {
  return std::make_unique<LinearGeluCpu>(request);
}

}  // namespace lockstep::ops
