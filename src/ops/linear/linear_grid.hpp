// linear over a Grid: a group an output, which adds over the input's features; gradients a thread an element, which
// adds over features, or over rows, in order. Simple and right: cuBLASLt is the fast one.
#pragma once

#include <memory>

#include "ops/elementwise.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

/// x [rows, in], weight [out, in], y [rows, out]
struct LinearSizes {
  std::int64_t rows, in, out;
};

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
    const float *x = input(call), *dy = output_gradient(call);
    if (float* dx = input_gradient(call); dx != nullptr) {
      const auto* weight = static_cast<const float*>(call.parameters[0]);
      Grid::each(call.queue, sizes_.rows * sizes_.in, LinearInputGradientBody{dy, weight, dx, sizes_});
    }
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      Grid::each(call.queue, sizes_.out * sizes_.in, LinearWeightGradientBody{x, dy, dw, sizes_});
    }
    if (!bias_ || call.parameter_gradients[1] == nullptr) return;
    Grid::each(call.queue, sizes_.out, SumRowsBody{dy, call.parameter_gradients[1], sizes_.rows, sizes_.out});
  }

 private:
  LinearSizes sizes_;
  bool bias_;
};

inline LinearSizes linear_sizes(const KernelRequest& request) {
  const Shape& weight = request.parameters[0].shape;
  const std::int64_t in = weight[1], out = weight[0];
  return {in == 0 ? 0 : request.inputs[0].elements() / in, in, out};
}

template <class Grid>
std::unique_ptr<Kernel> make_linear_grid(const KernelRequest& request) {
  return std::make_unique<LinearGrid<Grid>>(linear_sizes(request), request.parameters.size() > 1);
}

}  // namespace lockstep::ops
