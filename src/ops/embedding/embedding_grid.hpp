// embedding over a Grid. The gradient of a row is the sum over its positions in order: a thread a column walks all
// positions, so no atomics are needed. An id outside the vocabulary gives NaN, and the run ends as diverged: a kernel
// cannot throw.
#pragma once

#include <memory>

#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

template <class T>
struct EmbeddingBody {
  const std::int32_t* ids;
  const float* weight;
  T* y;
  std::int64_t vocabulary, width;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t id = ids[i / width];
    y[i] = id >= 0 && id < vocabulary ? weight[id * width + i % width] : __builtin_nanf("");
  }
};

template <class T>
struct EmbeddingGradientBody {
  const std::int32_t* ids;
  const T* dy;
  float* dw;
  std::int64_t positions, vocabulary, width;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t column) const {
    for (std::int64_t id = 0; id < vocabulary; ++id) dw[id * width + column] = 0;
    for (std::int64_t i = 0; i < positions; ++i) {
      const std::int64_t id = ids[i];
      if (id >= 0 && id < vocabulary) dw[id * width + column] += dy[i * width + column];
    }
  }
};

template <class Grid, class T>
class EmbeddingGrid final : public Kernel {
 public:
  EmbeddingGrid(std::int64_t positions, std::int64_t vocabulary, std::int64_t width)
      : positions_(positions), vocabulary_(vocabulary), width_(width) {}

  void forward(const ForwardCall& call) override {
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    Grid::each(call.queue, positions_ * width_,
               EmbeddingBody<T>{ids(call), weight, output<T>(call), vocabulary_, width_});
  }

  void backward(const BackwardCall& call) override {
    float* dw = call.parameter_gradients[0];
    if (dw == nullptr) return;
    Grid::each(call.queue, width_,
               EmbeddingGradientBody<T>{ids(call), output_gradient<T>(call), dw, positions_, vocabulary_, width_});
  }

 private:
  template <class Call>
  static const std::int32_t* ids(const Call& call) {
    return static_cast<const std::int32_t*>(call.inputs[0]);
  }
  std::int64_t positions_, vocabulary_, width_;
};

template <class Grid>
std::unique_ptr<Kernel> make_embedding_grid(const KernelRequest& request) {
  const Shape& weight = request.parameters[0].shape;
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<EmbeddingGrid<Grid, T>>(request.inputs[0].elements(), weight[0], weight[1]);
  });
}

}  // namespace lockstep::ops
