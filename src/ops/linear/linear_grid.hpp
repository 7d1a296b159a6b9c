// linear on a Grid: three products (device/gpu/product.hpp). Outputs sum over the input's features in lanes; gradients
// over features, or rows, in ascending order. cuBLASLt is faster: it has tensor cores, and its own order. The bias's
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

/// Stores the output and gelu of it.
template <class Out>
struct StoreWithGelu {
  const float* bias;  ///< null if there is none
  Out *pre, *y;
  std::int64_t columns;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*group*/, std::int64_t row, std::int64_t column, float sum) const {
    const float result = bias == nullptr ? sum : sum + bias[column];
    pre[row * columns + column] = result;
    y[row * columns + column] = GeluForward<GeluTanh>::of(result);
  }
};

/// For x = gelu(pre): continues from x's gradient to that of pre.
template <class T>
struct StoreThroughGelu {
  const T* pre;
  T* dpre;
  std::int64_t columns;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*group*/, std::int64_t row, std::int64_t column, float sum) const {
    const std::int64_t i = row * columns + column;
    dpre[i] = GeluGradient::of(sum, pre[i]);
  }
};

template <class Grid, class T, class In, class Out>
class LinearProducts final : public GeluProducts {
 public:
  LinearProducts(const LinearSizes& sizes, bool bias) : sizes_(sizes), bias_(bias) {}

  std::size_t workspace_bytes() const override { return bias_ ? device::row_sums_bytes(sizes_.rows, sizes_.out) : 0; }

  std::int64_t gradient_gap() const override { return sizes_.gap; }

  void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) override {
    make_output(call, x, weight, device::StoreElement<Out>{bias, static_cast<Out*>(y), sizes_.out});
  }
  void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) override {
    make_input_gradient(call, dy, weight, device::StoreElement<In>{nullptr, static_cast<In*>(dx), sizes_.in});
  }
  void output_and_gelu(const ProductCall& call, const void* x, const void* weight, const float* bias, void* pre,
                       void* y) override {
    make_output(call, x, weight, StoreWithGelu<Out>{bias, static_cast<Out*>(pre), static_cast<Out*>(y), sizes_.out});
  }
  void gelu_input_gradient(const ProductCall& call, const void* dz, const void* weight, const void* pre,
                           void* dpre) override {
    if constexpr (std::is_same_v<T, In>) {
      make_input_gradient(call, dz, weight, StoreThroughGelu<T>{elements(pre), static_cast<T*>(dpre), sizes_.in});
    } else {
      LOCKSTEP_CHECK(false, "make_gelu_linear_layer makes no such kernel");
    }
  }
  void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) override {
    Grid::product(call.stream,
                  device::product_of<device::SumOrder::ascending>(
                      1, sizes_.out, sizes_.in, sizes_.rows, Columns(elements(dy), sizes_.dy_step()),
                      Columns(elements(x), sizes_.in), device::StoreElement<float>{nullptr, dw, sizes_.in}));
  }
  void bias_gradient(const ProductCall& call, const void* dy, float* db) override {
    launch_row_sums<Grid>(call.stream, device::RowElements<T>{elements(dy), sizes_.dy_step()}, sizes_.rows, sizes_.out,
                          db, static_cast<float*>(call.workspace));
  }

 private:
  using Rows = device::MatrixLines<T, true>;
  using Columns = device::MatrixLines<T, false>;
  static const T* elements(const void* operand) { return static_cast<const T*>(operand); }
  template <class Store>
  void make_output(const ProductCall& call, const void* x, const void* weight, const Store& store) const {
    Grid::product(call.stream, device::product_of<device::SumOrder::lanes>(1, sizes_.rows, sizes_.out, sizes_.in,
                                                                           Rows(elements(x), sizes_.in),
                                                                           Rows(elements(weight), sizes_.in), store));
  }
  template <class Store>
  void make_input_gradient(const ProductCall& call, const void* dy, const void* weight, const Store& store) const {
    Grid::product(call.stream, device::product_of<device::SumOrder::ascending>(
                                   1, sizes_.rows, sizes_.in, sizes_.out, Rows(elements(dy), sizes_.dy_step()),
                                   Columns(elements(weight), sizes_.in), store));
  }
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
