// The gradient of an input is dy times the other inputs, from left to right.
#include <memory>

#include "ops/elementwise.hpp"
#include "ops/vectors.hpp"

namespace lockstep::ops {

namespace {

class MulCpu final : public Kernel {
 public:
  explicit MulCpu(std::int64_t n) : n_(n) {}

  void forward(const ForwardCall& call) override {
    multiply(input(call, 0), input(call, 1), output(call), n_);
    for (std::size_t i = 2; i < call.inputs.size(); ++i) multiply(output(call), input(call, i), output(call), n_);
  }

  void backward(const BackwardCall& call) override {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      float* dx = input_gradient(call, i);
      if (dx == nullptr) continue;
      const float* product = output_gradient(call);
      for (std::size_t other = 0; other < call.inputs.size(); ++other) {
        if (other == i) continue;
        multiply(product, input(call, other), dx, n_);
        product = dx;
      }
    }
  }

 private:
  std::int64_t n_;
};

}  // namespace

std::unique_ptr<Kernel> make_mul_cpu(const KernelRequest& request) {
  return std::make_unique<MulCpu>(request.outputs[0].elements());
}

}  // namespace lockstep::ops
