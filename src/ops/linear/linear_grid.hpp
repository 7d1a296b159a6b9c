// linear over a Grid: a group an output, which adds over the input's features; gradients a thread an element, which
// adds over features, or over rows, in order. Simple and right: cuBLASLt is the fast one.
#pragma once

#include <memory>

#include "ops/elementwise.hpp"
#include "ops/linear/linear_sizes.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

struct LinearBody {
  const float *x, *weight, *bias;  ///< bias is null where there is none
  float* y;
  LinearSizes sizes;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const std::int64_t row = i / sizes.out, column = i % sizes.out;
    const float *xr = x + row * sizes.in, *w = weight + column * sizes.in;
    const float product = group.sum(sizes.in, [=](std::int64_t k) { return xr[k] * w[k]; });
    const float result = bias == nullptr ? product : product + bias[column];
    float* to = y + i;
    group.once([=] { *to = result; });
  }
};

struct LinearInputGradientBody {
  const float *dy, *weight;
  float* dx;
  LinearSizes sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const float* dyr = dy + i / sizes.in * sizes.out;
    const std::int64_t column = i % sizes.in;
    float sum = 0;
    for (std::int64_t o = 0; o < sizes.out; ++o) sum += dyr[o] * weight[o * sizes.in + column];
    dx[i] = sum;
  }
};

struct LinearWeightGradientBody {
  const float *x, *dy;
  float* dw;
  LinearSizes sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t o = i / sizes.in, column = i % sizes.in;
    float sum = 0;
    for (std::int64_t row = 0; row < sizes.rows; ++row) sum += dy[row * sizes.out + o] * x[row * sizes.in + column];
    dw[i] = sum;
  }
};

template <class Grid>
class LinearGrid final : public Kernel {
 public:
  LinearGrid(const LinearSizes& sizes, bool bias) : sizes_(sizes), bias_(bias) {}

  void forward(const ForwardCall& call) override {
    const auto* bias = bias_ ? static_cast<const float*>(call.parameters[1]) : nullptr;
    Grid::rows(call.queue, sizes_.rows * sizes_.out,
               LinearBody{input(call), static_cast<const float*>(call.parameters[0]), bias, output(call), sizes_});
  }

  void backward(const BackwardCall& call) override {
    input_gradient(call);
    weight_gradient(call);
    bias_gradient(call);
  }

  // Each, where it is wanted.
  void input_gradient(const BackwardCall& call) const {
    float* dx = ops::input_gradient(call);
    if (dx == nullptr) return;
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    Grid::each(call.queue, sizes_.rows * sizes_.in, LinearInputGradientBody{output_gradient(call), weight, dx, sizes_});
  }
  void weight_gradient(const BackwardCall& call) const {
    float* dw = call.parameter_gradients[0];
    if (dw == nullptr) return;
    Grid::each(call.queue, sizes_.out * sizes_.in,
               LinearWeightGradientBody{input(call), output_gradient(call), dw, sizes_});
  }
  void bias_gradient(const BackwardCall& call) const {
    if (!bias_ || call.parameter_gradients[1] == nullptr) return;
    Grid::each(call.queue, sizes_.out,
               SumRowsBody{output_gradient(call), call.parameter_gradients[1], sizes_.rows, sizes_.out});
  }

 private:
  LinearSizes sizes_;
  bool bias_;
};

template <class Grid>
std::unique_ptr<Kernel> make_linear_grid(const KernelRequest& request) {
  return std::make_unique<LinearGrid<Grid>>(linear_sizes(request), request.parameters.size() > 1);
}

}  // namespace lockstep::ops
