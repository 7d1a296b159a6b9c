// embedding: row `id` of weight [vocabulary, width] for each id of the input, [b, ...] i32 to [b, ..., width]. An id
// outside the vocabulary is Error(data).
//
// The gradient of a row is the sum over its positions in order.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/embedding/embedding_positions.hpp"
#include "ops/initialize.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void require_gpu_positions(std::int64_t positions) {
  if (positions <= kMaxPositions) return;
  throw Error(
      ExitCode::configuration,
      fmt::format("embedding: on a GPU expected at most {} ids in a micro-batch, found {}; take more micro-batches",
                  kMaxPositions, positions));
}

namespace {

LOCKSTEP_VECTORIZED void add_to(const float* x, float* total, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) total[i] += x[i];
}

class EmbeddingCpu final : public Kernel {
 public:
  EmbeddingCpu(std::int64_t positions, std::int64_t vocabulary, std::int64_t width)
      : positions_(positions), vocabulary_(vocabulary), width_(width) {}

  void forward(const ForwardCall& call) override {
    const auto* ids = static_cast<const std::int32_t*>(call.inputs[0]);
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    for (std::int64_t i = 0; i < positions_; ++i) {
      if (ids[i] < 0 || ids[i] >= vocabulary_) fail(ids[i]);
      std::copy_n(weight + ids[i] * width_, width_, output(call) + i * width_);
    }
  }

  void backward(const BackwardCall& call) override {
    float* dw = call.parameter_gradients[0];
    if (dw == nullptr) return;
    const auto* ids = static_cast<const std::int32_t*>(call.inputs[0]);
    std::fill_n(dw, vocabulary_ * width_, 0.0F);
    for (std::int64_t i = 0; i < positions_; ++i) {
      add_to(output_gradient(call) + i * width_, dw + ids[i] * width_, width_);
    }
  }

 private:
  [[noreturn]] void fail(std::int32_t id) const {
    throw Error(ExitCode::data,
                fmt::format("embedding: expected ids from 0 to {}, found {}; `vocabulary` must be as large as "
                            "that of the data set",
                            vocabulary_ - 1, id));
  }

  std::int64_t positions_, vocabulary_, width_;
};

std::unique_ptr<Kernel> make_embedding_cpu(const KernelRequest& request) {
  const Shape& weight = request.parameters[0].shape;
  return std::make_unique<EmbeddingCpu>(request.inputs[0].elements(), weight[0], weight[1]);
}

Signature infer_embedding(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  if (inputs[0].dtype != DType::i32 || inputs[0].shape.empty()) {
    throw Error(ExitCode::configuration, fmt::format("embedding: expected an input [batch, ...] of i32, found {} of {}",
                                                     to_string(inputs[0].shape), name_of(inputs[0].dtype)));
  }
  const std::int64_t vocabulary = attributes.integer("vocabulary"), width = attributes.integer("width");
  Signature signature;
  signature.outputs.push_back({DType::f32, inputs[0].shape});
  signature.outputs[0].shape.push_back(width);
  signature.parameters.push_back({"weight", {vocabulary, width}, Initializer::normal(attributes.number("std"))});
  return signature;
}

}  // namespace

OpDef make_embedding() {
  OpDef op;
  op.name = "embedding";
  op.doc = "a learned vector for each id";
  op.attributes = {{.name = "vocabulary", .kind = AttributeKind::integer, .doc = "number of ids", .minimum = 1},
                   {.name = "width", .kind = AttributeKind::integer, .doc = "size of a vector", .minimum = 1},
                   {.name = "std",
                    .kind = AttributeKind::number,
                    .doc = "standard deviation of the first values",
                    .default_value = 0.02,
                    .minimum = 0}};
  op.constant_inputs = {0};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_embedding;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature& signature) {
    return Cost{0, static_cast<double>(signature.outputs[0].elements())};
  };
  op.kernels[DeviceKind::cpu] = make_embedding_cpu;
  return op;
}

void embedding_to_onnx(OnnxScope& scope) {
  scope.result(scope.add("Gather", {scope.parameter(0), scope.input()}));
}

}  // namespace lockstep::ops
