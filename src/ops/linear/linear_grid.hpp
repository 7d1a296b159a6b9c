// linear over a Grid: a group an output, which adds over the input's features; gradients a thread an element, which
// adds over features, or over rows, in order. Simple and right: cuBLASLt is the fast one.
#pragma once

#include <memory>

#include "ops/linear/linear_sizes.hpp"
#include "ops/product_layer_grid.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

template <class T, class Out>
struct LinearBody {
  const T *x, *weight;
  const float* bias;  ///< null where there is none
  Out* y;
  LinearSizes sizes;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const std::int64_t row = i / sizes.out, column = i % sizes.out;
    const T *xr = x + row * sizes.in, *w = weight + column * sizes.in;
    const float product = group.sum(sizes.in, [=](std::int64_t k) { return xr[k] * w[k]; });
    const float result = bias == nullptr ? product : product + bias[column];
    Out* to = y + i;
    group.once([=] { *to = result; });
  }
};

template <class T, class In>
struct LinearInputGradientBody {
  const T *dy, *weight;
  In* dx;
  LinearSizes sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const T* dyr = dy + i / sizes.in * sizes.out;
    const std::int64_t column = i % sizes.in;
    float sum = 0;
    for (std::int64_t o = 0; o < sizes.out; ++o) sum += dyr[o] * weight[o * sizes.in + column];
    dx[i] = sum;
  }
};

template <class T>
struct LinearWeightGradientBody {
  const T *x, *dy;
  float* dw;
  LinearSizes sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t o = i / sizes.in, column = i % sizes.in;
    float sum = 0;
    for (std::int64_t row = 0; row < sizes.rows; ++row) sum += dy[row * sizes.out + o] * x[row * sizes.in + column];
    dw[i] = sum;
  }
};

template <class Grid, class T, class In, class Out>
class LinearProducts final : public LayerProducts {
 public:
  explicit LinearProducts(const LinearSizes& sizes) : sizes_(sizes) {}

  void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) override {
    Grid::rows(call.queue, sizes_.rows * sizes_.out,
               LinearBody<T, Out>{elements(x), elements(weight), bias, static_cast<Out*>(y), sizes_});
  }
  void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) override {
    Grid::each(call.queue, sizes_.rows * sizes_.in,
               LinearInputGradientBody<T, In>{elements(dy), elements(weight), static_cast<In*>(dx), sizes_});
  }
  void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) override {
    Grid::each(call.queue, sizes_.out * sizes_.in, LinearWeightGradientBody<T>{elements(x), elements(dy), dw, sizes_});
  }
  void bias_gradient(const ProductCall& call, const void* dy, float* db) override {
    Grid::each(call.queue, sizes_.out, SumRowsBody<T>{elements(dy), db, sizes_.rows, sizes_.out});
  }

 private:
  static const T* elements(const void* operand) { return static_cast<const T*>(operand); }
  LinearSizes sizes_;
};

template <class Grid>
std::unique_ptr<LayerProducts> make_linear_products(const KernelRequest& request) {
  return make_for_products(
      request,
      [&]<class T, class In, class Out>(T /*operands*/, In /*x*/, Out /*y*/) -> std::unique_ptr<LayerProducts> {
        return std::make_unique<LinearProducts<Grid, T, In, Out>>(linear_sizes(request));
      });
}

template <class Grid>
std::unique_ptr<Kernel> make_linear_grid(const KernelRequest& request) {
  return make_product_layer<Grid>(request, make_linear_products<Grid>(request));
}

}  // namespace lockstep::ops
