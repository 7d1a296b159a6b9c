// concat: joins its inputs along one dimension other than the batch.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lockstep/error.hpp"
#include "ops/axis.hpp"
#include "ops/concat/concat_runs.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

class ConcatCpu final : public Kernel {
 public:
  explicit ConcatCpu(ConcatRuns runs) : outer_(runs.outer), runs_(std::move(runs.runs)) {
    for (const auto run : runs_) total_ += run;
  }

  void forward(const ForwardCall& call) override {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      for (std::int64_t o = 0; o < outer_; ++o) {
        std::copy_n(input(call, i) + o * runs_[i], runs_[i], output(call) + o * total_ + at);
      }
      at += runs_[i];
    }
  }

  void backward(const BackwardCall& call) override {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      float* dx = input_gradient(call, i);
      for (std::int64_t o = 0; dx != nullptr && o < outer_; ++o) {
        std::copy_n(output_gradient(call) + o * total_ + at, runs_[i], dx + o * runs_[i]);
      }
      at += runs_[i];
    }
  }

 private:
  std::int64_t outer_, total_ = 0;
  std::vector<std::int64_t> runs_;
};

std::unique_ptr<Kernel> make_concat_cpu(const KernelRequest& request) {
  return std::make_unique<ConcatCpu>(concat_runs(request));
}

Signature infer_concat(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const Shape& first = inputs[0].shape;
  const std::size_t axis = axis_of("concat", attributes, first);
  Signature signature;
  signature.outputs.push_back({inputs[0].dtype, first});
  std::int64_t& extent = signature.outputs[0].shape[axis];
  for (const auto& input : inputs.subspan(1)) {
    Shape shape = input.shape;
    if (shape.size() == first.size()) shape[axis] = first[axis];
    if (shape != first || input.dtype != DType::f32 || inputs[0].dtype != DType::f32) {
      throw Error(
          ExitCode::configuration,
          fmt::format("concat: expected inputs of f32 that differ in dimension {} only, found {} of {} and {} of {}",
                      axis, to_string(first), name_of(inputs[0].dtype), to_string(input.shape), name_of(input.dtype)));
    }
    extent += input.shape[axis];
  }
  return signature;
}

}  // namespace

OpDef make_concat() {
  OpDef op;
  op.name = "concat";
  op.doc = "its inputs, concatenated along one dimension";
  op.attributes = {{.name = "axis",
                    .kind = AttributeKind::integer,
                    .doc = "the batch is 0; negative: from the end",
                    .default_value = std::int64_t{-1}}};
  op.shorthand = "axis";
  op.min_inputs = 2;
  op.max_inputs = -1;
  op.infer = infer_concat;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  op.kernels[DeviceKind::cpu] = make_concat_cpu;
  return op;
}

void concat_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < scope.node().inputs.size(); ++i) inputs.push_back(scope.input(i, layout));
  const Shape& shape = scope.input_shape();
  const std::int64_t axis = OnnxScope::axis_in(layout, axis_of("concat", scope.attributes(), shape), shape.size());
  scope.result(scope.add("Concat", inputs, {{"axis", axis}}), layout);
}

}  // namespace lockstep::ops
