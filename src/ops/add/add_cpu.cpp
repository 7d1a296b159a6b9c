#include <cstring>
#include <memory>

#include "core/vectorize.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

/// y may be a.
LOCKSTEP_VECTORIZED void add(const float* a, const float* b, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

class AddCpu final : public Kernel {
 public:
  explicit AddCpu(std::int64_t n) : n_(n) {}

  void forward(const ForwardCall& call) override {
    add(input(call, 0), input(call, 1), output(call), n_);
    for (std::size_t i = 2; i < call.inputs.size(); ++i) add(output(call), input(call, i), output(call), n_);
  }

  void backward(const BackwardCall& call) override {
    if (n_ == 0) return;
    for (std::size_t i = 0; i < call.input_gradients.size(); ++i) {
      float* dx = input_gradient(call, i);
      if (dx != nullptr) std::memcpy(dx, output_gradient(call), static_cast<std::size_t>(n_) * sizeof(float));
    }
  }

 private:
  std::int64_t n_;
};

}  // namespace

std::unique_ptr<Kernel> make_add_cpu(const KernelRequest& request) {
  return std::make_unique<AddCpu>(request.outputs[0].elements());
}

}  // namespace lockstep::ops
