// position_embedding on a Grid. The weight's gradient adds sample after sample.
#pragma once

#include <memory>

#include "ops/elementwise_grid.hpp"
#include "ops/position_embedding/position_rows.hpp"

namespace lockstep::ops {

template <class T>
struct PositionEmbeddingFunctor {
  const T* x;
  const float* weight;
  T* y;
  std::int64_t used;  ///< elements per sample
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { y[i] = x[i] + weight[i % used]; }
};

/// Zero for positions that no sample has.
template <class T>
struct PositionEmbeddingGradientFunctor {
  const T* dy;
  float* dw;
  std::int64_t batch, used;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    float sum = 0;
    for (std::int64_t b = 0; b < batch && i < used; ++b) sum += dy[b * used + i];
    dw[i] = sum;
  }
};

template <class Grid, class T>
class PositionEmbeddingGrid final : public Kernel {
 public:
  PositionEmbeddingGrid(std::int64_t batch, std::int64_t used, std::int64_t size)
      : batch_(batch), used_(used), size_(size) {}

  void forward(const ForwardCall& call) override {
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    Grid::each(stream_of(call), batch_ * used_,
               PositionEmbeddingFunctor<T>{input<T>(call), weight, output<T>(call), used_});
  }

  void backward(const BackwardCall& call) override {
    const T* dy = output_gradient<T>(call);
    if (T* dx = input_gradient<T>(call); dx != nullptr)
      Grid::each(stream_of(call), batch_ * used_, device::CopyFunctor<T>{dy, dx});
    float* dw = call.parameter_gradients[0];
    if (dw != nullptr) Grid::each(stream_of(call), size_, PositionEmbeddingGradientFunctor<T>{dy, dw, batch_, used_});
  }

 private:
  std::int64_t batch_, used_, size_;  ///< elements per sample, and of the weight
};

template <class Grid>
std::unique_ptr<Kernel> make_position_embedding_grid(const KernelRequest& request) {
  const PositionRows rows = position_rows(request);
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<PositionEmbeddingGrid<Grid, T>>(rows.count, rows.used, request.parameters[0].elements());
  });
}

}  // namespace lockstep::ops
