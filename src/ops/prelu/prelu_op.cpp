// prelu and its kernel for CPUs. The slopes' gradient is a sum over rows of channels (rows.hpp); a slope for all is the
// sum over the channels, from the first to the last.
#include <cstddef>
#include <memory>

#include "core/vectorize.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/prelu/prelu.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void apply_slopes(const float* x, const float* slopes, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : slopes[i] * x[i];
}

LOCKSTEP_VECTORIZED void apply_slopes_gradient(const float* x, const float* dy, const float* slopes, float* dx,
                                               std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = x[i] > 0 ? dy[i] : slopes[i] * dy[i];
}

LOCKSTEP_VECTORIZED void slope_terms(const float* x, const float* dy, float* terms, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) terms[i] = slope_gradient(x[i], dy[i]);
}

class PreluCpu final : public Kernel {
 public:
  explicit PreluCpu(const KernelRequest& request)
      : rows_(request.inputs[0]), shared_(request.attributes->boolean("shared")) {}

  /// The slope of each channel and the sums of the channels; the terms of the slopes' gradient, and what sums over rows
  /// take.
  std::size_t workspace_bytes() const override {
    return ((2 + rows_.count) * rows_.size) * sizeof(float) + device::row_sums_bytes(rows_.count, rows_.size);
  }

  void forward(const ForwardCall& call) override {
    const float* slopes = slopes_of(call);
    for (std::int64_t row = 0; row < rows_.count; ++row) {
      apply_slopes(input(call) + row * rows_.size, slopes, output(call) + row * rows_.size, rows_.size);
    }
  }

  void backward(const BackwardCall& call) override {
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) sum_slopes(call, dw);
    // Last, since it may be written over x or dy.
    float* const dx = input_gradient(call);
    const float* slopes = slopes_of(call);
    for (std::int64_t row = 0; dx != nullptr && row < rows_.count; ++row) {
      const std::int64_t at = row * rows_.size;
      apply_slopes_gradient(input(call) + at, output_gradient(call) + at, slopes, dx + at, rows_.size);
    }
  }

 private:
  template <class Call>
  const float* slopes_of(const Call& call) const {
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    if (!shared_) return weight;
    auto* const all = static_cast<float*>(call.workspace);
    for (std::int64_t c = 0; c < rows_.size; ++c) all[c] = weight[0];
    return all;
  }

  void sum_slopes(const BackwardCall& call, float* dw) const {
    float* const sums = static_cast<float*>(call.workspace) + rows_.size;
    float* const terms = sums + rows_.size;
    const std::int64_t n = rows_.count * rows_.size;
    slope_terms(input(call), output_gradient(call), terms, n);
    sum_rows(terms, rows_.count, rows_.size, shared_ ? sums : dw, terms + n);
    if (!shared_) return;
    float total = 0;
    for (std::int64_t c = 0; c < rows_.size; ++c) total += sums[c];
    dw[0] = total;
  }

  Rows rows_;
  bool shared_;
};

Signature infer_prelu(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  expect_rows("prelu", inputs[0]);
  Signature signature = same_shape(attributes, inputs);
  const std::int64_t slopes = attributes.boolean("shared") ? 1 : inputs[0].shape.back();
  const Initializer first{Initializer::Kind::constant, attributes.number("init")};
  signature.parameters = {{"weight", {slopes}, first, false}};
  return signature;
}

}  // namespace

OpDef make_prelu() {
  OpDef op;
  op.name = "prelu";
  op.doc = "x above 0, a learned share of x below";
  op.attributes = {{.name = "init",
                    .kind = AttributeKind::number,
                    .doc = "first value of the shares; Keras has 0",
                    .default_value = 0.25},
                   {.name = "shared",
                    .kind = AttributeKind::boolean,
                    .doc = "one share for all channels (PyTorch's default)",
                    .default_value = false}};
  op.shorthand = "init";
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.over_gradient = true, .over_input = true};
  op.infer = infer_prelu;
  op.cost = elementwise_cost<2, 5>;
  op.kernels[DeviceKind::cpu] = kernel_of<PreluCpu>;
  return op;
}

void prelu_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  scope.result(scope.add("PRelu", {x, scope.parameter(0)}));
}

}  // namespace lockstep::ops
