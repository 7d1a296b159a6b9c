// linear on a Grid: one group per output, which sums over the input's features; gradients with one thread per element,
// which sums over features or rows in order. Simple and correct; cuBLASLt is the fast implementation. The bias's
// gradient is a sum over rows, for which there is nothing faster.
#pragma once

#include <memory>
#include <type_traits>

#include "ops/gelu/gelu_grid.hpp"
#include "ops/linear/linear_sizes.hpp"
#include "ops/product_layer_grid.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

/// The products of linear_gelu and gelu_linear: linear's, with gelu (tanh approximation) after or before them.
class GeluProducts : public LayerProducts {
 public:
  /// pre = x * weight^T + bias and y = gelu(pre), which uses pre before it is rounded. `bias`: null if there is none.
  virtual void output_and_gelu(const ProductCall& call, const void* x, const void* weight, const float* bias, void* pre,
                               void* y) = 0;
  /// dpre = (dz * weight) * gelu'(pre), rounded once.
  virtual void gelu_input_gradient(const ProductCall& call, const void* dz, const void* weight, const void* pre,
                                   void* dpre) = 0;
};

/// Computes output i.
template <class T, class Group>
LOCKSTEP_HOST_DEVICE float linear_output(Group& group, const T* x, const T* weight, const float* bias,
                                         const LinearSizes& sizes, std::int64_t i) {
  const std::int64_t row = i / sizes.out, column = i % sizes.out;
  const T *xr = x + row * sizes.in, *w = weight + column * sizes.in;
  const float product = group.sum(sizes.in, [=](std::int64_t k) { return xr[k] * w[k]; });
  return bias == nullptr ? product : product + bias[column];
}

/// Computes the gradient of input i.
template <class T>
LOCKSTEP_HOST_DEVICE float linear_input_gradient(const T* dy, const T* weight, const LinearSizes& sizes,
                                                 std::int64_t i) {
  const T* dyr = dy + i / sizes.in * sizes.dy_step();
  const std::int64_t column = i % sizes.in;
  float sum = 0;
  for (std::int64_t o = 0; o < sizes.out; ++o) sum += dyr[o] * weight[o * sizes.in + column];
  return sum;
}

template <class T, class Out>
struct LinearFunctor {
  const T *x, *weight;
  const float* bias;  ///< null if there is none
  Out* y;
  LinearSizes sizes;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const float result = linear_output(group, x, weight, bias, sizes, i);
    Out* to = y + i;
    group.once([=] { *to = result; });
  }
};

/// Like LinearFunctor, plus gelu of the result.
template <class T, class Out>
struct LinearGeluFunctor {
  const T *x, *weight;
  const float* bias;  ///< null if there is none
  Out *pre, *y;
  LinearSizes sizes;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const float result = linear_output(group, x, weight, bias, sizes, i);
    Out *to = pre + i, *gelu_to = y + i;
    group.once([=] {
      *to = result;
      *gelu_to = GeluForward<GeluTanh>::of(result);
    });
  }
};

template <class T, class In>
struct LinearInputGradientFunctor {
  const T *dy, *weight;
  In* dx;
  LinearSizes sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { dx[i] = linear_input_gradient(dy, weight, sizes, i); }
};

/// Like LinearInputGradientFunctor, for x = gelu(pre), and continues to the gradient of pre.
template <class T>
struct GeluInputGradientFunctor {
  const T *dy, *weight, *pre;
  T* dpre;
  LinearSizes sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    dpre[i] = GeluGradient::of(linear_input_gradient(dy, weight, sizes, i), pre[i]);
  }
};

template <class T>
struct LinearWeightGradientFunctor {
  const T *x, *dy;
  float* dw;
  LinearSizes sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t o = i / sizes.in, column = i % sizes.in;
    float sum = 0;
    for (std::int64_t row = 0; row < sizes.rows; ++row)
      sum += dy[row * sizes.dy_step() + o] * x[row * sizes.in + column];
    dw[i] = sum;
  }
};

template <class Grid, class T, class In, class Out>
class LinearProducts final : public GeluProducts {
 public:
  LinearProducts(const LinearSizes& sizes, bool bias) : sizes_(sizes), bias_(bias) {}

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return bias_ ? device::row_sums_bytes(sizes_.rows, sizes_.out) : 0;
  }

  [[nodiscard]] std::int64_t gradient_gap() const override { return sizes_.gap; }

  void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) override {
    Grid::rows(call.stream, sizes_.rows * sizes_.out,
               LinearFunctor<T, Out>{elements(x), elements(weight), bias, static_cast<Out*>(y), sizes_});
  }
  void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) override {
    Grid::each(call.stream, sizes_.rows * sizes_.in,
               LinearInputGradientFunctor<T, In>{elements(dy), elements(weight), static_cast<In*>(dx), sizes_});
  }
  void output_and_gelu(const ProductCall& call, const void* x, const void* weight, const float* bias, void* pre,
                       void* y) override {
    Grid::rows(call.stream, sizes_.rows * sizes_.out,
               LinearGeluFunctor<T, Out>{elements(x), elements(weight), bias, static_cast<Out*>(pre),
                                         static_cast<Out*>(y), sizes_});
  }
  void gelu_input_gradient(const ProductCall& call, const void* dz, const void* weight, const void* pre,
                           void* dpre) override {
    if constexpr (std::is_same_v<T, In>) {
      Grid::each(
          call.stream, sizes_.rows * sizes_.in,
          GeluInputGradientFunctor<T>{elements(dz), elements(weight), elements(pre), static_cast<T*>(dpre), sizes_});
    } else {
      LOCKSTEP_CHECK(false, "make_gelu_linear_layer makes no such kernel");
    }
  }
  void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) override {
    Grid::each(call.stream, sizes_.out * sizes_.in,
               LinearWeightGradientFunctor<T>{elements(x), elements(dy), dw, sizes_});
  }
  void bias_gradient(const ProductCall& call, const void* dy, float* db) override {
    launch_row_sums<Grid>(call.stream, device::RowElements<T>{elements(dy), sizes_.dy_step()}, sizes_.rows, sizes_.out,
                          db, static_cast<float*>(call.workspace));
  }

 private:
  static const T* elements(const void* operand) { return static_cast<const T*>(operand); }
  LinearSizes sizes_;
  bool bias_;
};

template <class Grid>
std::unique_ptr<GeluProducts> make_linear_products(const KernelRequest& request) {
  return make_for_products(
      request, [&]<class T, class In, class Out>(T /*operands*/, In /*x*/, Out /*y*/) -> std::unique_ptr<GeluProducts> {
        return std::make_unique<LinearProducts<Grid, T, In, Out>>(linear_sizes(request), request.parameters.size() > 1);
      });
}

template <class Grid>
std::unique_ptr<Kernel> make_linear_grid(const KernelRequest& request) {
  return make_product_layer<Grid>(request, make_linear_products<Grid>(request));
}

/// linear's kernels, except that the one for the output also applies gelu.
template <class Grid>
class LinearGelu final : public ProductLayer<Grid, GeluProducts> {
 public:
  using ProductLayer<Grid, GeluProducts>::ProductLayer;

 private:
  void make_output(const ProductCall& to, const ForwardCall& call, const void* x, const float* bias) override {
    this->products().output_and_gelu(to, x, call.parameters[0], bias, call.outputs[0], call.outputs[1]);
  }
};

/// Null if pre and y have different types; null for null.
template <class Grid>
std::unique_ptr<Kernel> make_linear_gelu_layer(const KernelRequest& request, std::unique_ptr<GeluProducts> products) {
  if (products == nullptr || request.outputs[0].dtype != request.outputs[1].dtype) return nullptr;
  return std::make_unique<LinearGelu<Grid>>(request, std::move(products));
}

template <class Grid>
std::unique_ptr<Kernel> make_linear_gelu_grid(const KernelRequest& request) {
  return make_linear_gelu_layer<Grid>(request, make_linear_products<Grid>(request));
}

/// linear's kernels, except that the one for the input's gradient continues through gelu.
template <class Grid>
class GeluLinear final : public ProductLayer<Grid, GeluProducts> {
 public:
  using ProductLayer<Grid, GeluProducts>::ProductLayer;

 private:
  void make_input_gradient(const ProductCall& to, const BackwardCall& call, const void* dz) override {
    void* const dpre = call.input_gradients[1];
    if (dpre != nullptr) this->products().gelu_input_gradient(to, dz, call.parameters[0], call.inputs[1], dpre);
  }
};

/// Null unless y and pre both have the products' type; null for null.
template <class Grid>
std::unique_ptr<Kernel> make_gelu_linear_layer(const KernelRequest& request, std::unique_ptr<GeluProducts> products) {
  const auto fits = [&](const TensorSpec& input) { return input.dtype == request.compute_type; };
  if (products == nullptr || !fits(request.inputs[0]) || !fits(request.inputs[1])) return nullptr;
  return std::make_unique<GeluLinear<Grid>>(request, std::move(products));
}

template <class Grid>
std::unique_ptr<Kernel> make_gelu_linear_grid(const KernelRequest& request) {
  return make_gelu_linear_layer<Grid>(request, make_linear_products<Grid>(request));
}

}  // namespace lockstep::ops
