// rms_norm: y = x / sqrt(mean(x^2) + epsilon) * weight over the last dimension. Saved: 1 / sqrt(...) of each row.
//
// With z = x * r and g = dy * weight: dx = r * (g - z * mean(g * z)). The weight's gradient is a sum over rows
// (rows.hpp).
#include <cmath>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void normalize(const float* x, const float* weight, float* y, float* saved, Rows rows,
                                   float epsilon) {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float* xr = x + row * rows.size;
    const float mean = device::dot(xr, xr, rows.size) / rows.size;
    const float r = 1.0F / std::sqrt(mean + epsilon);
    for (std::int64_t i = 0; i < rows.size; ++i) y[row * rows.size + i] = xr[i] * r * weight[i];
    if (saved != nullptr) saved[row] = r;
  }
}

/// dx first holds g * x, so that its sum has the specified association.
LOCKSTEP_VECTORIZED void input_gradients(const float* x, const float* dy, const float* saved, const float* weight,
                                         float* dx, Rows rows) {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const std::int64_t at = row * rows.size;
    const float r = saved[row];
    for (std::int64_t i = 0; i < rows.size; ++i) dx[at + i] = dy[at + i] * weight[i] * (x[at + i] * r);
    const float mean = device::sum(dx + at, rows.size) / rows.size;
    for (std::int64_t i = 0; i < rows.size; ++i) dx[at + i] = r * (dy[at + i] * weight[i] - x[at + i] * r * mean);
  }
}

class RmsNormCpu final : public Kernel {
 public:
  RmsNormCpu(Rows rows, double epsilon) : rows_(rows), epsilon_(epsilon) {}

  std::size_t workspace_bytes() const override { return device::row_sums_bytes(rows_.count, rows_.size); }

  void forward(const ForwardCall& call) override {
    normalize(input(call), static_cast<const float*>(call.parameters[0]), output(call),
              call.saved.empty() ? nullptr : static_cast<float*>(call.saved[0]), rows_, epsilon_);
  }

  bool can_recompute() const override { return true; }
  void recompute(const ForwardCall& call) override { forward(call); }

  void backward(const BackwardCall& call) override {
    const auto* saved = static_cast<const float*>(call.saved[0]);
    const float *x = input(call), *dy = output_gradient(call);
    if (float* dx = input_gradient(call); dx != nullptr) {
      input_gradients(x, dy, saved, static_cast<const float*>(call.parameters[0]), dx, rows_);
    }
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      sum_scale_gradients({x, dy, nullptr, saved, rows_.count, rows_.size}, dw, call.workspace);
    }
  }

 private:
  Rows rows_;
  float epsilon_;
};

std::unique_ptr<Kernel> make_rms_norm_cpu(const KernelRequest& request) {
  return std::make_unique<RmsNormCpu>(Rows(request.inputs[0]), request.attributes->number("epsilon"));
}

Signature infer_rms_norm(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  expect_rows("rms_norm", inputs[0]);
  Signature signature;
  signature.outputs = {inputs[0]};
  signature.parameters.push_back({"weight", {inputs[0].shape.back()}, Initializer::ones(), false});
  signature.saved = {per_row(inputs[0])};
  return signature;
}

}  // namespace

OpDef make_rms_norm() {
  OpDef op;
  op.name = "rms_norm";
  op.doc = "divides by the root mean square of the last dimension";
  op.attributes = {{.name = "epsilon",
                    .kind = AttributeKind::number,
                    .doc = "added to the mean of squares",
                    .default_value = 1e-5,
                    .minimum = 0}};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_rms_norm;
  op.cost = elementwise_cost<5, 11>;
  op.kernels[DeviceKind::cpu] = make_rms_norm_cpu;
  return op;
}

void rms_norm_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  const std::string squares = scope.add("Mul", {x, x});
  const std::string mean = scope.add("ReduceMean", {squares, scope.integers({-1})});
  const float epsilon = scope.attributes().number("epsilon");
  const std::string root = scope.add("Sqrt", {scope.add("Add", {mean, scope.number(epsilon)})});
  scope.result(scope.add("Mul", {scope.add("Div", {x, root}), scope.parameter(0)}));
}

}  // namespace lockstep::ops
