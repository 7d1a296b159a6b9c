// The common part of linear and conv on a Grid: y = x * weight + bias, each with its own product, and the three
// gradients. A product's operands (x, weight, dy) have the type KernelRequest::compute_type; float32 tensors are first
// rounded to it, in the workspace, if it is a low-precision type. y and dx have their own types and are rounded once;
// biases and gradients of parameters are float32.
#pragma once

#include <memory>
#include <string>

#include "core/round_up.hpp"
#include "device/gpu/element_kernels.hpp"
#include "lockstep/error.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

/// The stream and workspace of a product.
struct ProductCall {
  GpuStream* stream = nullptr;
  void* workspace = nullptr;
};

/// Computes a layer's products; operands as above.
class LayerProducts {
 public:
  LayerProducts() = default;
  LayerProducts(const LayerProducts&) = delete;
  LayerProducts& operator=(const LayerProducts&) = delete;
  virtual ~LayerProducts() = default;
  virtual std::size_t workspace_bytes() const { return 0; }
  virtual std::string algorithms() const { return ""; }  ///< see Kernel
  /// Elements that they need between the rows of dy, if that is a copy.
  virtual std::int64_t gradient_gap() const { return 0; }
  /// `bias`: null if there is none.
  virtual void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) = 0;
  virtual void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) = 0;
  virtual void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) = 0;
  virtual void bias_gradient(const ProductCall& call, const void* dy, float* db) = 0;
  /// Both, for libraries that can compute them in one call.
  virtual void weight_and_bias_gradients(const ProductCall& call, const void* x, const void* dy, float* dw, float* db) {
    weight_gradient(call, x, dy, dw);
    bias_gradient(call, dy, db);
  }
};

/// Rounds up to the alignment that libraries need for operands and workspaces.
constexpr std::size_t aligned_for_libraries(std::size_t bytes) {
  return round_up<std::size_t>(bytes, 256);
}

/// A tensor as an operand.
template <class Grid>
class ProductOperand {
 public:
  /// If a copy is needed, it is placed in the workspace at `at`, which is then advanced past it. `changes`: a copy is
  /// needed even for the same type, since the operand differs from the tensor. `gap`: elements between the copy's rows
  /// (the last dimension).
  ProductOperand(const TensorSpec& spec, DType compute_type, std::size_t& at, bool changes = false,
                 std::int64_t gap = 0)
      : compute_type_(compute_type),
        elements_(spec.elements()),
        row_(spec.shape.back()),
        gap_(gap),
        start_(at),
        copies_(changes || spec.dtype != compute_type) {
    LOCKSTEP_CHECK(gap == 0 || (copies_ && !changes), "gaps are made where fp32 is copied");
    const std::int64_t gaps = elements_ == 0 ? 0 : elements_ / row_ * gap_;
    if (copies_) at += aligned_for_libraries((elements_ + gaps) * size_of(compute_type));
  }
  const void* read(GpuStream* stream, const void* tensor, void* workspace) const {
    if (!copies_) return tensor;
    void* const to = copy(workspace);
    if (gap_ == 0) {
      device::launch_cast<Grid>(stream, device::Cast::downcast, compute_type_, tensor, to, elements_);
    } else {
      device::with_low_precision(compute_type_, [&]<class T>(T /*element*/) {
        const auto* from = static_cast<const float*>(tensor);
        Grid::each(stream, elements_, device::CopyRowsFunctor<T>{from, static_cast<T*>(to), Divisor(row_), gap_});
      });
    }
    return to;
  }
  void* copy(void* workspace) const { return static_cast<std::byte*>(workspace) + start_; }

 private:
  DType compute_type_;
  std::int64_t elements_, row_, gap_;
  std::size_t start_;
  bool copies_;
};

/// `Products`: LayerProducts, or a class derived from it for a layer with another output or input gradient.
template <class Grid, class Products = LayerProducts>
class ProductLayer : public Kernel {
 public:
  ProductLayer(const KernelRequest& request, std::unique_ptr<Products> products)
      : products_(std::move(products)),
        x_(request.inputs[0], request.compute_type, copies_),
        dy_(gradient_operand(request, *products_, copies_)),
        bias_(request.parameters.size() > 1) {}

  std::size_t workspace_bytes() const override { return copies_ + products_->workspace_bytes(); }
  std::string algorithms() const override { return products_->algorithms(); }

  void forward(const ForwardCall& call) override {
    const auto* bias = bias_ ? static_cast<const float*>(call.parameters[1]) : nullptr;
    const void* x = x_.read(stream_of(call), call.inputs[0], call.workspace);
    make_output(rest(call), call, x, bias);
  }

  void backward(const BackwardCall& call) override {
    const void* dy = read_gradient(call, dy_);
    make_input_gradient(rest(call), call, dy);
    float* const dw = call.parameter_gradients[0];
    float* const db = bias_ ? call.parameter_gradients[1] : nullptr;
    if (dw == nullptr && db != nullptr) products_->bias_gradient(rest(call), dy, db);
    if (dw == nullptr) return;
    const void* x = x_.read(stream_of(call), call.inputs[0], call.workspace);
    if (db == nullptr) return products_->weight_gradient(rest(call), x, dy, dw);
    products_->weight_and_bias_gradients(rest(call), x, dy, dw, db);
  }

 protected:
  [[nodiscard]] Products& products() { return *products_; }
  /// The gradient of the products' result, as their operand. With an epilogue, `dy` has a copy for it.
  virtual const void* read_gradient(const BackwardCall& call, const ProductOperand<Grid>& dy) {
    return dy.read(stream_of(call), call.output_gradients[0], call.workspace);
  }

 private:
  static ProductOperand<Grid> gradient_operand(const KernelRequest& request, const Products& products,
                                               std::size_t& at) {
    TensorSpec spec = request.outputs[0];
    if (!request.rounded_gradient.rounds()) {
      return {spec, request.compute_type, at, !request.epilogue.empty(), products.gradient_gap()};
    }
    const RoundedGradient read{request.compute_type, products.gradient_gap()};
    LOCKSTEP_CHECK(request.rounded_gradient == read, "a gradient as the products read it");
    spec.dtype = request.compute_type;
    return {spec, request.compute_type, at};
  }
  virtual void make_output(const ProductCall& to, const ForwardCall& call, const void* x, const float* bias) {
    products_->output(to, x, call.parameters[0], bias, call.outputs[0]);
  }
  /// Computes it if it is wanted.
  virtual void make_input_gradient(const ProductCall& to, const BackwardCall& call, const void* dy) {
    if (void* dx = call.input_gradients[0]; dx != nullptr) products_->input_gradient(to, dy, call.parameters[0], dx);
  }
  template <class Call>
  ProductCall rest(const Call& call) const {
    return {stream_of(call), static_cast<std::byte*>(call.workspace) + copies_};
  }

  std::unique_ptr<Products> products_;
  std::size_t copies_ = 0;  ///< bytes
  ProductOperand<Grid> x_, dy_;
  bool bias_;
};

/// Calls make(T{}, In{}, Out{}) with the element types of the operands, of x and dx, and of y. Null if they are not as
/// described above.
template <class Make>
auto make_for_products(const KernelRequest& request, const Make& make) -> decltype(make(float{}, float{}, float{})) {
  using Made = decltype(make(float{}, float{}, float{}));
  const DType compute_type = request.compute_type, in = request.inputs[0].dtype, out = request.outputs[0].dtype;
  const auto fits = [&](DType dtype) { return dtype == compute_type || dtype == DType::f32; };
  if (request.parameters[0].dtype != compute_type || !fits(in) || !fits(out)) return nullptr;
  if (compute_type == DType::f32) return make(float{}, float{}, float{});
  return device::with_low_precision(compute_type, [&]<class T>(T low) -> Made {
    if (in == DType::f32) return out == DType::f32 ? make(low, float{}, float{}) : make(low, float{}, low);
    return out == DType::f32 ? make(low, low, float{}) : make(low, low, low);
  });
}

/// The kernel of a layer with these products; null for null.
template <class Grid>
std::unique_ptr<Kernel> make_product_layer(const KernelRequest& request, std::unique_ptr<LayerProducts> products) {
  if (products == nullptr) return nullptr;
  return std::make_unique<ProductLayer<Grid>>(request, std::move(products));
}

}  // namespace lockstep::ops
