#include <algorithm>
#include <memory>

#include "backend/cpu/gemm.hpp"
#include "backend/cpu/reduce.hpp"
#include "core/vectorize.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

using backend::gemm;

LOCKSTEP_VECTORIZED void fill_rows(const float* bias, float* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < n; ++i) y[row * n + i] = bias[i];
  }
}

LOCKSTEP_VECTORIZED void bias_gradient(const float* dy, float* db, std::int64_t rows, std::int64_t n) {
  backend::sum_rows(dy, db, rows, n);
}

class LinearCpu final : public Kernel {
 public:
  LinearCpu(std::int64_t rows, std::int64_t in, std::int64_t out, bool bias)
      : rows_(rows), in_(in), out_(out), bias_(bias) {}

  void forward(const ForwardCall& call) override {
    if (bias_) fill_rows(static_cast<const float*>(call.parameters[1]), output(call), rows_, out_);
    gemm(rows_, out_, in_, 1, {input(call), in_}, {weight(call.parameters), in_, true}, bias_ ? 1 : 0, output(call),
         out_);
  }

  void backward(const BackwardCall& call) override {
    const float* dy = output_gradient(call);
    if (float* dx = input_gradient(call); dx != nullptr) {
      gemm(rows_, in_, out_, 1, {dy, out_}, {weight(call.parameters), in_}, 0, dx, in_);
    }
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      gemm(out_, in_, rows_, 1, {dy, out_, true}, {input(call), in_}, 0, dw, in_);
    }
    if (bias_ && call.parameter_gradients[1] != nullptr) bias_gradient(dy, call.parameter_gradients[1], rows_, out_);
  }

 private:
  static const float* weight(std::span<const void* const> parameters) {
    return static_cast<const float*>(parameters[0]);
  }

  std::int64_t rows_, in_, out_;
  bool bias_;
};

}  // namespace

std::unique_ptr<Kernel> make_linear_cpu(const KernelRequest& request) {
  const Shape& weight = request.parameters[0].shape;
  const std::int64_t in = weight[1], out = weight[0];
  const std::int64_t rows = in == 0 ? 0 : request.inputs[0].elements() / in;
  return std::make_unique<LinearCpu>(rows, in, out, request.parameters.size() > 1);
}

}  // namespace lockstep::ops
