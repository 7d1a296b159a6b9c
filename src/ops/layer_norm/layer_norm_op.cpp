// layer_norm: y = (x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimension.
// Saved: mean and 1 / sqrt(variance + epsilon) of each row.
//
// With z = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - mean(g) - z * mean(g * z)).
// The parameters' gradients are sums over rows (rows.hpp).
#include <cmath>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

namespace {

using device::kLanes;
using device::Lanes;

/// Sum of (x - mean)^2.
LOCKSTEP_INLINE float squares(const float* x, float mean, std::int64_t n) {
  Lanes total = {}, part;
  for (std::int64_t i = 0; i < n; i += kLanes) {
    if (i + kLanes <= n)
      device::load(part, x + i);
    else
      device::load_part(part, x + i, n - i, mean);
    part -= mean;
    total += part * part;
  }
  return device::combine(total);
}

LOCKSTEP_VECTORIZED void normalize(const float* x, const float* weight, const float* bias, float* y, float* means,
                                   float* rstds, Rows rows, float epsilon) {
  const float n = rows.size;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float* xr = x + row * rows.size;
    float* yr = y + row * rows.size;
    const float mean = device::sum(xr, rows.size) / n;
    const float rstd = 1.0F / std::sqrt(squares(xr, mean, rows.size) / n + epsilon);
    if (bias != nullptr) {
      for (std::int64_t i = 0; i < rows.size; ++i) yr[i] = (xr[i] - mean) * rstd * weight[i] + bias[i];
    } else {
      for (std::int64_t i = 0; i < rows.size; ++i) yr[i] = (xr[i] - mean) * rstd * weight[i];
    }
    if (means != nullptr) {
      means[row] = mean;
      rstds[row] = rstd;
    }
  }
}

struct Row {
  const float *x, *dy;
  float mean, rstd;
};

LOCKSTEP_INLINE void input_gradient_row(const Row& row, const float* weight, float* dx, std::int64_t n) {
  Lanes sum_g = {}, sum_gz = {}, x, dy, w;
  for (std::int64_t i = 0; i < n; i += kLanes) {
    if (i + kLanes <= n) {
      device::load(x, row.x + i);
      device::load(dy, row.dy + i);
      device::load(w, weight + i);
    } else {
      device::load_part(x, row.x + i, n - i, 0);
      device::load_part(dy, row.dy + i, n - i, 0);
      device::load_part(w, weight + i, n - i, 0);
    }
    const Lanes g = dy * w;
    sum_g += g;
    sum_gz += g * ((x - row.mean) * row.rstd);
  }
  const float size = n;
  const float mean_g = device::combine(sum_g) / size, mean_gz = device::combine(sum_gz) / size;
  for (std::int64_t i = 0; i < n; ++i) {
    const float z = (row.x[i] - row.mean) * row.rstd;
    dx[i] = row.rstd * (row.dy[i] * weight[i] - mean_g - z * mean_gz);
  }
}

LOCKSTEP_VECTORIZED void input_gradients(const float* x, const float* dy, const float* means, const float* rstds,
                                         const float* weight, float* dx, Rows rows) {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const std::int64_t at = row * rows.size;
    input_gradient_row({x + at, dy + at, means[row], rstds[row]}, weight, dx + at, rows.size);
  }
}

class LayerNormCpu final : public Kernel {
 public:
  LayerNormCpu(Rows rows, double epsilon, bool bias) : rows_(rows), epsilon_(epsilon), bias_(bias) {}

  std::size_t workspace_bytes() const override { return device::row_sums_bytes(rows_.count, rows_.size); }

  void forward(const ForwardCall& call) override {
    const bool save = !call.saved.empty();
    normalize(input(call), static_cast<const float*>(call.parameters[0]),
              bias_ ? static_cast<const float*>(call.parameters[1]) : nullptr, output(call),
              save ? static_cast<float*>(call.saved[0]) : nullptr, save ? static_cast<float*>(call.saved[1]) : nullptr,
              rows_, epsilon_);
  }

  bool can_recompute() const override { return true; }
  void recompute(const ForwardCall& call) override { forward(call); }

  void backward(const BackwardCall& call) override {
    const auto* means = static_cast<const float*>(call.saved[0]);
    const auto* rstds = static_cast<const float*>(call.saved[1]);
    const float *x = input(call), *dy = output_gradient(call);
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      sum_scale_gradients({x, dy, means, rstds, rows_.count, rows_.size}, dw, call.workspace);
    }
    if (float* db = bias_ ? call.parameter_gradients[1] : nullptr; db != nullptr) {
      sum_rows(dy, rows_.count, rows_.size, db, call.workspace);
    }
    if (input_gradient(call) == nullptr) return;
    // Last, because it may overwrite x or dy.
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    input_gradients(x, dy, means, rstds, weight, input_gradient(call), rows_);
  }

 private:
  Rows rows_;
  float epsilon_;
  bool bias_;
};

std::unique_ptr<Kernel> make_layer_norm_cpu(const KernelRequest& request) {
  return std::make_unique<LayerNormCpu>(Rows(request.inputs[0]), request.attributes->number("epsilon"),
                                        request.parameters.size() > 1);
}

Signature infer_layer_norm(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  expect_rows("layer_norm", inputs[0]);
  const std::int64_t size = inputs[0].shape.back();
  Signature signature;
  signature.outputs = {inputs[0]};
  signature.parameters.push_back({"weight", {size}, Initializer::ones(), false});
  if (attributes.boolean("bias")) signature.parameters.push_back({"bias", {size}, Initializer::zeros(), false});
  signature.saved = {per_row(inputs[0]), per_row(inputs[0])};
  return signature;
}

}  // namespace

OpDef make_layer_norm() {
  OpDef op;
  op.name = "layer_norm";
  op.doc = "normalizes the last dimension";
  op.attributes = {{.name = "epsilon",
                    .kind = AttributeKind::number,
                    .doc = "added to the variance",
                    .default_value = 1e-5,
                    .minimum = 0},
                   {.name = "bias", .kind = AttributeKind::boolean, .doc = "add a bias", .default_value = true}};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.over_gradient = true, .over_input = true};
  op.infer = infer_layer_norm;
  op.cost = elementwise_cost<8, 14>;
  op.kernels[DeviceKind::cpu] = make_layer_norm_cpu;
  return op;
}

void layer_norm_to_onnx(OnnxScope& scope) {
  std::vector<std::string> inputs{scope.input(), scope.parameter(0)};
  if (scope.parameters() == 2) inputs.push_back(scope.parameter(1));
  const float epsilon = scope.attributes().number("epsilon");
  scope.result(scope.add("LayerNormalization", inputs, {{"axis", std::int64_t{-1}}, {"epsilon", epsilon}}));
}

}  // namespace lockstep::ops
