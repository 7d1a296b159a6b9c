// linear by cuBLASLt, each of its products with a plan of its own; where there is none, and for the bias's gradient,
// whose order of additions no library states, by the kernels of linear_grid.hpp.
#include <algorithm>

#include "backend/cuda/cuda_grid.cuh"
#include "backend/cuda/lt_product.hpp"
#include "ops/linear/linear_grid.hpp"

namespace lockstep::ops {

namespace {

using backend::LtProduct;

class LinearCuda final : public Kernel {
 public:
  LinearCuda(const LinearSizes& sizes, bool bias, const GpuQueue& queue, Mode mode)
      : own_(sizes, bias), bias_(bias), output_(LtProduct::make(queue, output_product(sizes), bias)) {
    if (mode != Mode::training) return;
    input_gradient_ = LtProduct::make(queue, input_gradient_product(sizes), false);
    weight_gradient_ = LtProduct::make(queue, weight_gradient_product(sizes), false);
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const auto* product : {&output_, &input_gradient_, &weight_gradient_}) {
      if (*product) bytes = std::max(bytes, (*product)->workspace_bytes());
    }
    return bytes;
  }

  [[nodiscard]] std::string plan() const override {
    const auto name = [](const std::optional<LtProduct>& product) { return product ? product->name() : "own kernel"; };
    return "output: " + name(output_) + "; input's gradient: " + name(input_gradient_) +
           "; weight's gradient: " + name(weight_gradient_);
  }

  void forward(const ForwardCall& call) override {
    if (!output_) return own_.forward(call);
    const auto* bias = bias_ ? static_cast<const float*>(call.parameters[1]) : nullptr;
    output_->run(*call.queue, {weight(call), input(call), bias, output(call)}, call.workspace);
  }

  void backward(const BackwardCall& call) override {
    const float *x = input(call), *dy = output_gradient(call);
    if (float* dx = input_gradient(call); dx != nullptr && input_gradient_) {
      input_gradient_->run(*call.queue, {weight(call), dy, nullptr, dx}, call.workspace);
    } else {
      own_.input_gradient(call);
    }
    if (float* dw = call.parameter_gradients[0]; dw != nullptr && weight_gradient_) {
      weight_gradient_->run(*call.queue, {x, dy, nullptr, dw}, call.workspace);
    } else {
      own_.weight_gradient(call);
    }
    own_.bias_gradient(call);
  }

 private:
  template <class Call>
  static const float* weight(const Call& call) {
    return static_cast<const float*>(call.parameters[0]);
  }

  LinearGrid<backend::CudaGrid> own_;
  bool bias_;
  std::optional<LtProduct> output_, input_gradient_, weight_gradient_;
};

}  // namespace

std::unique_ptr<Kernel> make_linear_cuda(const KernelRequest& request) {
  if (request.queue == nullptr) return make_linear_grid<backend::CudaGrid>(request);
  return std::make_unique<LinearCuda>(linear_sizes(request), request.parameters.size() > 1, *request.queue,
                                      request.mode);
}

}  // namespace lockstep::ops
