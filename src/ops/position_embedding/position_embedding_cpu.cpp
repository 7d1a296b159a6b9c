// The weight's gradient adds sample after sample.
#include <algorithm>
#include <memory>

#include "device/cpu/add.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

class PositionEmbeddingCpu final : public Kernel {
 public:
  PositionEmbeddingCpu(std::int64_t batch, std::int64_t used, std::int64_t size)
      : batch_(batch), used_(used), size_(size) {}

  void forward(const ForwardCall& call) override {
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    for (std::int64_t b = 0; b < batch_; ++b) {
      device::add(input(call) + b * used_, weight, output(call) + b * used_, used_);
    }
  }

  void backward(const BackwardCall& call) override {
    const float* dy = output_gradient(call);
    if (input_gradient(call) != nullptr) std::copy_n(dy, batch_ * used_, input_gradient(call));
    float* dw = call.parameter_gradients[0];
    if (dw == nullptr) return;
    std::fill_n(dw, size_, 0.0F);
    for (std::int64_t b = 0; b < batch_; ++b) device::add(dw, dy + b * used_, dw, used_);
  }

 private:
  std::int64_t batch_, used_, size_;  ///< elements of a sample, and of the weight
};

}  // namespace

std::unique_ptr<Kernel> make_position_embedding_cpu(const KernelRequest& request) {
  const Shape& x = request.inputs[0].shape;
  return std::make_unique<PositionEmbeddingCpu>(x[0], x[1] * x[2], request.parameters[0].elements());
}

}  // namespace lockstep::ops
