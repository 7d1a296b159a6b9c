#include "core/vectorize.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void scale_by(float factor, const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

class ScaleCpu final : public Kernel {
 public:
  ScaleCpu(double factor, std::int64_t n) : factor_(static_cast<float>(factor)), n_(n) {}

  void forward(const ForwardCall& call) override { scale_by(factor_, input(call), output(call), n_); }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) != nullptr) scale_by(factor_, output_gradient(call), input_gradient(call), n_);
  }

 private:
  float factor_;
  std::int64_t n_;
};

}  // namespace

std::unique_ptr<Kernel> make_scale_cpu(const KernelRequest& request) {
  return std::make_unique<ScaleCpu>(request.attributes->number("factor"), request.outputs[0].elements());
}

}  // namespace lockstep::ops
