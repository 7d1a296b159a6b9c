// conv_transpose on a Grid, by conv's products: the output is an image gradient, the input's gradient an output, and
// the weight's gradient has image and output exchanged.
#pragma once

#include <memory>

#include "ops/conv/conv_grid.hpp"
#include "ops/conv_transpose/conv_transpose_shape.hpp"
#include "ops/product_layer_grid.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

template <class Grid, class T, class In, class Out>
class ConvTransposeProducts final : public LayerProducts {
 public:
  explicit ConvTransposeProducts(const KernelRequest& request)
      : shape_(conv_transpose_shape(*request.attributes, request.inputs[0])), outputs_(request.outputs[0].elements()) {}

  std::size_t workspace_bytes() const override {
    return shape_.bias ? device::row_sums_bytes(pixels(), shape_.image.channels) : 0;
  }

  void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) override {
    launch_conv_input_gradient<Grid>(call.stream, shape_, operand(x), operand(weight), static_cast<Out*>(y), bias);
  }
  void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) override {
    launch_conv<Grid>(call.stream, shape_, operand(dy), operand(weight), nullptr, static_cast<In*>(dx));
  }
  void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) override {
    launch_conv_weight_gradient<Grid>(call.stream, shape_, operand(dy), operand(x), dw);
  }
  void bias_gradient(const ProductCall& call, const void* dy, float* db) override {
    launch_row_sums<Grid>(call.stream, device::RowElements<T>{operand(dy), shape_.image.channels}, pixels(),
                          shape_.image.channels, db, static_cast<float*>(call.workspace));
  }

 private:
  static const T* operand(const void* tensor) { return static_cast<const T*>(tensor); }
  /// Of the output.
  std::int64_t pixels() const { return outputs_ / shape_.image.channels; }
  ConvShape shape_;
  std::int64_t outputs_;  ///< elements
};

template <class Grid>
std::unique_ptr<Kernel> make_conv_transpose_grid(const KernelRequest& request) {
  auto products = make_for_products(
      request,
      [&]<class T, class In, class Out>(T /*operands*/, In /*x*/, Out /*y*/) -> std::unique_ptr<LayerProducts> {
        return std::make_unique<ConvTransposeProducts<Grid, T, In, Out>>(request);
      });
  return make_product_layer<Grid>(request, std::move(products));
}

}  // namespace lockstep::ops
