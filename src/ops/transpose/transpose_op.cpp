// transpose: permutes a sample's dimensions. `order` names the input's dimensions, with the batch as 0, which stays
// first: [2, 1] turns [b, T, C] into [b, C, T].
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/transpose/transpose_walk.hpp"

namespace lockstep::ops {

TransposeWalk transpose_walk(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  std::vector<std::int64_t> input_strides(shape.size(), 1);
  for (std::size_t d = shape.size() - 1; d > 0; --d) input_strides[d - 1] = input_strides[d] * shape[d];
  std::vector<std::int64_t> strides = {input_strides[0]};
  for (const auto dimension : request.attributes->integers("order")) {
    strides.push_back(input_strides[dimension]);
  }
  return {request.outputs[0].shape, std::move(strides)};
}

void require_gpu_rank(const TransposeWalk& walk, std::size_t most) {
  if (walk.shape.size() <= most) return;
  throw Error(
      ExitCode::configuration,
      fmt::format("transpose: on a GPU expected at most {} dimensions, found an output {}; flatten some of them "
                  "by reshape first",
                  most, to_string(walk.shape)));
}

namespace {

class TransposeCpu final : public Kernel {
 public:
  explicit TransposeCpu(TransposeWalk walk)
      : shape_(std::move(walk.shape)), strides_(std::move(walk.strides)), index_(shape_.size()) {}

  void forward(const ForwardCall& call) override {
    const float* x = input(call);
    float* y = output(call);
    walk([&](std::int64_t in, std::int64_t out) { y[out] = x[in]; });
  }

  void backward(const BackwardCall& call) override {
    float* dx = input_gradient(call);
    if (dx == nullptr) return;
    const float* dy = output_gradient(call);
    walk([&](std::int64_t in, std::int64_t out) { dx[in] = dy[out]; });
  }

 private:
  /// Calls visit(index in the input, index in the output) in the output's order.
  template <class Visit>
  void walk(const Visit& visit) {
    const std::int64_t inner = shape_.back(), step = strides_.back(), runs = inner == 0 ? 0 : elements(shape_) / inner;
    std::fill(index_.begin(), index_.end(), 0);
    std::int64_t in = 0, out = 0;
    for (std::int64_t run = 0; run < runs; ++run) {
      for (std::int64_t i = 0; i < inner; ++i) visit(in + i * step, out++);
      for (auto d = static_cast<std::ptrdiff_t>(shape_.size()) - 2; d >= 0; --d) {
        const std::size_t at = d;
        in += strides_[at];
        if (++index_[at] < shape_[at]) break;
        in -= strides_[at] * shape_[at];
        index_[at] = 0;
      }
    }
  }

  Shape shape_;
  std::vector<std::int64_t> strides_, index_;
};

std::unique_ptr<Kernel> make_transpose_cpu(const KernelRequest& request) {
  return std::make_unique<TransposeCpu>(transpose_walk(request));
}

Signature infer_transpose(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const Shape& shape = inputs[0].shape;
  const auto order = attributes.integers("order");
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool complete = sorted.size() + 1 == shape.size() && inputs[0].dtype == DType::f32;
  for (std::size_t i = 0; complete && i < sorted.size(); ++i) complete = sorted[i] == static_cast<std::int64_t>(i + 1);
  if (!complete) {
    throw Error(
        ExitCode::configuration,
        fmt::format("transpose: expected an order of the dimensions 1 to {} of an input {} of f32, found [{}] and {}",
                    static_cast<std::int64_t>(shape.size()) - 1, to_string(shape), fmt::join(order, ", "),
                    name_of(inputs[0].dtype)));
  }
  Signature signature;
  signature.outputs.push_back({DType::f32, {shape[0]}});
  for (const auto dimension : order) signature.outputs[0].shape.push_back(shape[dimension]);
  return signature;
}

}  // namespace

OpDef make_transpose() {
  OpDef op;
  op.name = "transpose";
  op.doc = "permutes a sample's dimensions";
  op.attributes = {{.name = "order",
                    .kind = AttributeKind::integers,
                    .doc = "the input's dimensions (the batch is 0) in their new order: [2, 1]",
                    .minimum = 1}};
  op.shorthand = "order";
  op.infer = infer_transpose;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  op.kernels[DeviceKind::cpu] = make_transpose_cpu;
  return op;
}

void transpose_to_onnx(OnnxScope& scope) {
  std::vector<std::int64_t> order = scope.attributes().integers("order");
  order.insert(order.begin(), 0);
  const std::string x = scope.input();
  scope.result(scope.transpose(x, std::move(order)));
}

}  // namespace lockstep::ops
