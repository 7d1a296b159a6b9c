// softmax: y_k = e^x_k / sum_j e^x_j over the last dimension. Its gradient: dx = y * (dy - sum(y * dy)).
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/softmax.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void softmax(const float* x, float* y, Rows rows) {
  for (std::int64_t at = 0; at < rows.count * rows.size; at += rows.size) {
    const float scale = 1.0F / device::exponentials(x + at, y + at, rows.size, device::maximum(x + at, rows.size));
    for (std::int64_t i = 0; i < rows.size; ++i) y[at + i] *= scale;
  }
}

LOCKSTEP_VECTORIZED void softmax_gradient(const float* y, const float* dy, float* dx, Rows rows) {
  for (std::int64_t at = 0; at < rows.count * rows.size; at += rows.size) {
    const float mean = device::dot(y + at, dy + at, rows.size);
    for (std::int64_t i = 0; i < rows.size; ++i) dx[at + i] = y[at + i] * (dy[at + i] - mean);
  }
}

class SoftmaxCpu final : public Kernel {
 public:
  explicit SoftmaxCpu(const KernelRequest& request) : rows_(request.inputs[0]) {}
  void forward(const ForwardCall& call) override { softmax(input(call), output(call), rows_); }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    softmax_gradient(static_cast<const float*>(call.outputs[0]), output_gradient(call), input_gradient(call), rows_);
  }

 private:
  Rows rows_;
};

Signature infer_softmax(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  expect_rows("softmax", inputs[0]);
  return same_shape(attributes, inputs);
}

}  // namespace

OpDef make_softmax() {
  OpDef op;
  op.name = "softmax";
  op.doc = "softmax of the last dimension";
  op.backward_reads = {.inputs = false, .outputs = true};
  op.infer = infer_softmax;
  op.cost = elementwise_cost<20, 4>;
  op.kernels[DeviceKind::cpu] = kernel_of<SoftmaxCpu>;
  return op;
}

void softmax_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  scope.result(scope.add("Softmax", {x}, {{"axis", std::int64_t{-1}}}));
}

}  // namespace lockstep::ops
