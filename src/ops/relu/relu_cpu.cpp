// The gradient at 0 is 0, as in every framework.
#include <memory>

#include "core/vectorize.hpp"
#include "ops/elementwise.hpp"
#include "ops/vectors.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void relu(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

class ReluCpu final : public Kernel {
 public:
  explicit ReluCpu(std::int64_t n) : n_(n) {}
  void forward(const ForwardCall& call) override { relu(input(call), output(call), n_); }
  void backward(const BackwardCall& call) override {
    relu_gradient(static_cast<const float*>(call.outputs[0]), output_gradient(call), input_gradient(call), n_);
  }

 private:
  std::int64_t n_;
};

}  // namespace

std::unique_ptr<Kernel> make_relu_cpu(const KernelRequest& request) {
  return std::make_unique<ReluCpu>(request.outputs[0].elements());
}

}  // namespace lockstep::ops
