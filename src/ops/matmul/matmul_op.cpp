// matmul: the products of two inputs' matrices, their last two dimensions: [..., m, k] * [..., k, n] is [..., m, n].
// All dimensions before them are equal, and a product is made for each of their indices; with `transpose` the second
// input is [..., n, k].
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "device/cpu/gemm.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/matmul/matmul_sizes.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

bool matrices_fit(const Shape& a, const Shape& b, bool transposed) {
  return a.size() >= 3 && a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin()) &&
         a.back() == b[b.size() - (transposed ? 1 : 2)];
}

Signature infer_matmul(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const bool transposed = attributes.boolean("transpose");
  const TensorSpec &a = inputs[0], &b = inputs[1];
  if (a.dtype != DType::f32 || b.dtype != DType::f32) {
    throw Error(ExitCode::configuration,
                fmt::format("matmul: expected inputs of f32, found {} of {} and {} of {}", to_string(a.shape),
                            name_of(a.dtype), to_string(b.shape), name_of(b.dtype)));
  }
  if (!matrices_fit(a.shape, b.shape, transposed)) {
    std::string advice;
    if (matrices_fit(a.shape, b.shape, !transposed)) {
      advice = fmt::format("; these fit with transpose: {}", transposed ? "false" : "true");
    }
    throw Error(ExitCode::configuration,
                fmt::format("matmul: expected inputs [batch, ..., m, k] and [batch, ..., {}], found {} and {}{}",
                            transposed ? "n, k" : "k, n", to_string(a.shape), to_string(b.shape), advice));
  }
  Signature signature;
  signature.outputs.push_back(a);
  signature.outputs[0].shape.back() = MatmulSizes(attributes, inputs).n;
  return signature;
}

Cost matmul_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs, const Signature& signature) {
  const double flops = 2.0 * static_cast<double>(inputs[0].elements()) * signature.outputs[0].shape.back();
  return {flops, 2 * flops};
}

class MatmulCpu final : public Kernel {
 public:
  explicit MatmulCpu(const KernelRequest& request) : s_(*request.attributes, request.inputs) {}

  void forward(const ForwardCall& call) override {
    for (std::int64_t i = 0; i < s_.count; ++i) {
      device::gemm(s_.m, s_.n, s_.k, a(input(call, 0), i), b(input(call, 1), i, s_.transposed),
                   {output(call) + i * s_.m * s_.n, s_.n});
    }
  }

  void backward(const BackwardCall& call) override {
    float *const da = input_gradient(call, 0), *const db = input_gradient(call, 1);
    for (std::int64_t i = 0; i < s_.count; ++i) {
      const float* const dy = output_gradient(call) + i * s_.m * s_.n;
      if (da != nullptr) {
        device::gemm(s_.m, s_.k, s_.n, {dy, s_.n}, b(input(call, 1), i, !s_.transposed), {da + i * s_.m * s_.k, s_.k});
      }
      if (db == nullptr) continue;
      const device::MatrixResult to{db + i * s_.k * s_.n, s_.b_columns()};
      if (s_.transposed) {
        device::gemm(s_.n, s_.k, s_.m, {dy, s_.n, true}, a(input(call, 0), i), to);
      } else {
        device::gemm(s_.k, s_.n, s_.m, a(input(call, 0), i, true), {dy, s_.n}, to);
      }
    }
  }

 private:
  device::MatrixView a(const float* data, std::int64_t i, bool transposed = false) const {
    return {data + i * s_.m * s_.k, s_.k, transposed};
  }
  device::MatrixView b(const float* data, std::int64_t i, bool transposed) const {
    return {data + i * s_.k * s_.n, s_.b_columns(), transposed};
  }

  MatmulSizes s_;
};

}  // namespace

OpDef make_matmul() {
  OpDef op;
  op.name = "matmul";
  op.doc = "matrix products of two inputs, over their last two dimensions";
  op.attributes = {{.name = "transpose",
                    .kind = AttributeKind::boolean,
                    .doc = "transpose the second input: [..., m, k] by [..., n, k]",
                    .default_value = false}};
  op.min_inputs = op.max_inputs = 2;
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_matmul;
  op.cost = matmul_cost;
  op.multiplies = true;
  op.kernels[DeviceKind::cpu] = kernel_of<MatmulCpu>;
  return op;
}

void matmul_to_onnx(OnnxScope& scope) {
  const std::string a = scope.input(0);
  std::string b = scope.input(1);
  if (scope.attributes().boolean("transpose")) {
    std::vector<std::int64_t> order(scope.input_shape(1).size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 2], order[order.size() - 1]);
    b = scope.transpose(b, std::move(order));
  }
  scope.result(scope.add("MatMul", {a, b}));
}

}  // namespace lockstep::ops
