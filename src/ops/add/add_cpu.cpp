#include <cstring>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/add.hpp"
#include "ops/elementwise.hpp"
#include "ops/vectors.hpp"

namespace lockstep::ops {

namespace {

/// relu(a + b)
LOCKSTEP_VECTORIZED void add_relu(const float* a, const float* b, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    y[i] = sum > 0 ? sum : 0;
  }
}

class AddCpu final : public Kernel {
 public:
  AddCpu(std::int64_t n, bool relu) : n_(n), relu_(relu) {}

  void forward(const ForwardCall& call) override {
    const std::size_t last = call.inputs.size() - 1;
    const float* sum = input(call, 0);
    for (std::size_t i = 1; i <= last; ++i) {
      (relu_ && i == last ? add_relu : device::add)(sum, input(call, i), output(call), n_);
      sum = output(call);
    }
  }

  void backward(const BackwardCall& call) override {
    if (n_ == 0) return;
    if (relu_) {
      relu_gradient(static_cast<const float*>(call.outputs[0]), output_gradient(call), input_gradient(call), n_);
      return;
    }
    for (std::size_t i = 0; i < call.input_gradients.size(); ++i) {
      float* dx = input_gradient(call, i);
      if (dx != nullptr) std::memcpy(dx, output_gradient(call), static_cast<std::size_t>(n_) * sizeof(float));
    }
  }

 private:
  std::int64_t n_;
  bool relu_;
};

}  // namespace

std::unique_ptr<Kernel> make_add_cpu(const KernelRequest& request) {
  return std::make_unique<AddCpu>(request.outputs[0].elements(), request.epilogue == "relu");
}

}  // namespace lockstep::ops
