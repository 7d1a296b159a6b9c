// The gradient of a row is the sum over its positions in order.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

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

}  // namespace

std::unique_ptr<Kernel> make_embedding_cpu(const KernelRequest& request) {
  const Shape& weight = request.parameters[0].shape;
  return std::make_unique<EmbeddingCpu>(request.inputs[0].elements(), weight[0], weight[1]);
}

}  // namespace lockstep::ops
