#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/dnnl_layer.hpp"
#include "device/cpu/gemm.hpp"
#include "ops/dnnl_layer_cpu.hpp"
#include "ops/elementwise.hpp"
#include "ops/kept_weight.hpp"
#include "ops/linear/linear_sizes.hpp"
#include "ops/rows.hpp"
#include "ops/upcast.hpp"

namespace lockstep::ops {

namespace {

using device::gemm;

LOCKSTEP_VECTORIZED void fill_rows(const float* bias, float* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < n; ++i) y[row * n + i] = bias[i];
  }
}

class LinearCpu final : public Kernel {
 public:
  LinearCpu(const LinearSizes& sizes, const KernelRequest& request)
      : rows_(sizes.rows),
        in_(sizes.in),
        out_(sizes.out),
        bias_(request.parameters.size() > 1),
        trains_(request.mode == Mode::training),
        forward_(in_, out_, rows_, request.keeps_weights, true),
        backward_(in_, out_, rows_, request.keeps_weights, false) {}

  std::size_t workspace_bytes() const override { return bias_ ? device::row_sums_bytes(rows_, out_) : 0; }
  std::size_t kept_bytes() const override { return forward_.bytes() + (trains_ ? backward_.bytes() : 0); }

  void forward(const ForwardCall& call) override {
    if (bias_) fill_rows(static_cast<const float*>(call.parameters[1]), output(call), rows_, out_);
    forward_.multiply({input(call), in_}, weight(call.parameters), call.step->parameters_version,
                      {output(call), out_, bias_});
  }

  void backward(const BackwardCall& call) override {
    const float* dy = output_gradient(call);
    if (float* dx = input_gradient(call); dx != nullptr) {
      backward_.multiply({dy, out_}, weight(call.parameters), call.step->parameters_version, {dx, in_});
    }
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      gemm(out_, in_, rows_, {dy, out_, true}, {input(call), in_}, {dw, in_, (call.add_to & 1U) != 0});
    }
    if (float* db = bias_ ? call.parameter_gradients[1] : nullptr; db != nullptr) {
      sum_rows(dy, rows_, out_, db, call.workspace);
    }
  }

  /// For the weight, if its product is a single block: then it is complete before it is added.
  bool adds_gradient(std::size_t parameter) const override {
    return parameter == 0 && rows_ > 0 && rows_ <= device::kGemmDepth;
  }

 private:
  static const float* weight(std::span<const void* const> parameters) {
    return static_cast<const float*>(parameters[0]);
  }

  std::int64_t rows_, in_, out_;
  bool bias_, trains_;
  KeptWeight forward_, backward_;
};

/// In bfloat16 by oneDNN's inner product; float32 uses gemm. For requests that multiplies_natively().
std::unique_ptr<Kernel> make_linear_native(const KernelRequest& request) {
  using Layout = dnnl::memory::format_tag;
  const LinearSizes s = linear_sizes(request);
  const DnnlLayerShape shape{.source = {s.rows, s.in},
                             .weight = {s.out, s.in},
                             .destination = {s.rows, s.out},
                             .activations = Layout::ab,
                             .plain_weight = Layout::ab};
  return make_dnnl_layer(
      request, shape,
      [&](const dnnl::engine& engine, const device::DnnlTensors& tensors) {
        return describe(engine, device::InnerProductSpec{tensors, request.mode == Mode::training});
      },
      [&](const KernelRequest& exact) { return std::make_unique<LinearCpu>(s, exact); });
}

}  // namespace

std::unique_ptr<Kernel> make_linear_cpu(const KernelRequest& request) {
  if (needs_upcast(request)) {
    return multiplies_natively(request, dnnl::get_effective_cpu_isa()) ? make_linear_native(request) : nullptr;
  }
  return std::make_unique<LinearCpu>(linear_sizes(request), request);
}

}  // namespace lockstep::ops
