// linear's products by a library, with a plan for each; without a plan, by the products passed to the constructor. What
// a product's epilogue cannot do is done afterwards by one of our kernels: the bias's gradient; and gelu, or rounding,
// from fp32 sums in the workspace. The workspace holds those sums, or a low-precision copy of the bias, or what
// PaddedWeight needs, followed by the library's own workspace.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "device/gpu/column_product.hpp"
#include "device/gpu/element_kernels.hpp"
#include "device/gpu/product_form.hpp"
#include "device/layer_algorithms.hpp"
#include "ops/gelu/gelu_grid.hpp"
#include "ops/linear/library_padded_weight.hpp"
#include "ops/linear/linear_grid.hpp"

namespace lockstep::ops {

// Our matrices are row-major, so to cuBLAS they are their transposes: x [rows, in] has `in` rows and `rows` columns
// there.

/// y = x * weight^T is y^T [out, rows] = weight * x^T. Factors: weight, x.
inline device::ColumnProduct output_product(const LinearSizes& s) {
  return {{s.in, s.out, true}, {s.in, s.rows, false}};
}
/// dx = dy * weight is dx^T [in, rows] = weight^T * dy^T. Factors: weight, dy.
inline device::ColumnProduct input_gradient_product(const LinearSizes& s) {
  return {{s.in, s.out, false}, {s.out, s.rows, false, s.gap}};
}
/// dw = dy^T * x is dw^T [in, out] = x^T * dy. Factors: x, dy.
inline device::ColumnProduct weight_gradient_product(const LinearSizes& s) {
  return {{s.in, s.rows, false}, {s.out, s.rows, true, s.gap}};
}

/// Which tensor gelu is applied to.
enum class GeluAt : std::uint8_t { none, output, input };

using ProductForms = std::vector<device::ProductForm>;

/// Whether a library's gelu can be used: its accuracy is not specified, and fp32 must be exact.
inline bool takes_librarys_gelu(device::ProductTypes types) {
  return is_low_precision(types.factors) || types.tf32;
}

/// A bias is added in fp32, and the output is rounded once afterwards. If the library supports this for a low-precision
/// bias only, it gets a rounded one: the last form, which keeps sums in fp32 for our own kernel to round or apply gelu
/// to, moves three to five times the memory.
inline ProductForms output_forms(const LinearSizes& sizes, device::ProductTypes types, bool bias, GeluAt gelu) {
  using device::Epilogue;
  device::ProductTypes wide = types;
  wide.result = DType::f32;
  const Epilogue plain = bias ? Epilogue::bias : Epilogue::none;
  const bool with_gelu = gelu == GeluAt::output && takes_librarys_gelu(types);
  const Epilogue whole = !with_gelu ? plain : bias ? Epilogue::bias_gelu : Epilogue::gelu;
  ProductForms forms;
  if (!device::has_aux(whole) || device::aux_fits(output_product(sizes))) {
    forms.push_back({types, whole});
    if (bias && is_low_precision(types.result)) forms.push_back({types, whole, types.result});
  }
  const bool rounded = wide.result != types.result;
  if (whole != plain || rounded) forms.push_back({wide, plain, DType::f32, rounded});
  return forms;
}

/// Like output_forms().
inline ProductForms input_gradient_forms(const LinearSizes& sizes, device::ProductTypes types, GeluAt gelu) {
  if (gelu != GeluAt::input) return {{types}};
  ProductForms forms;
  if (takes_librarys_gelu(types) && device::aux_fits(input_gradient_product(sizes))) {
    forms.push_back({types, device::Epilogue::gelu_gradient});
  }
  const bool rounded = is_low_precision(types.result);
  types.result = DType::f32;
  forms.push_back({types, device::Epilogue::none, DType::f32, rounded});
  return forms;
}

/// The bias was added to the columns of dy, which is the product's b.
inline ProductForms weight_gradient_forms(device::ProductTypes types, bool bias) {
  if (!bias) return {{types}};
  return {{types, device::Epilogue::sums_of_b}, {types}};
}

/// `Product`: device::LtProduct, or a class with its interface.
template <class Grid, class Product>
class LibraryLinear final : public GeluProducts {
 public:
  /// `part_bytes`: see PaddedWeight.
  LibraryLinear(const KernelRequest& request, GeluAt gelu, std::unique_ptr<GeluProducts> own,
                std::int64_t part_bytes = PaddedWeight::kPartBytes)
      : own_(std::move(own)), in_(request.inputs[0]), out_(request.outputs[0]), features_(out_.shape.back()) {
    const LinearSizes sizes = linear_sizes(request);
    const bool bias = request.parameters.size() > 1;
    const auto types = [&](DType result) {
      return device::ProductTypes{request.compute_type, result, request.gpu->tf32};
    };
    const auto wanted = device::LayerAlgorithms::of(request.gpu->algorithms);
    const auto make = [&](const device::ColumnProduct& product, const ProductForms& forms, const std::string& name) {
      return Product::make(*request.gpu->stream, product, forms, {request.node, name});
    };
    if (gelu == GeluAt::none && PaddedWeight::fits(sizes, bias)) {
      padded_.emplace(sizes, request.compute_type, part_bytes);
    }
    const LinearSizes of_output = padded_ ? padded_->output_sizes().value_or(sizes) : sizes;
    output_ = make(output_product(of_output), output_forms(of_output, types(out_.dtype), bias, gelu), wanted.output);
    if (request.mode != Mode::training) return;
    const LinearSizes of_gradient = padded_ ? padded_->input_gradient_sizes() : sizes;
    input_gradient_ = make(input_gradient_product(of_gradient),
                           input_gradient_forms(of_gradient, types(in_.dtype), gelu), wanted.input_gradient);
    weight_gradient_ =
        make(weight_gradient_product(sizes), weight_gradient_forms(types(DType::f32), bias), wanted.weight_gradient);
  }

  std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const auto* product : {&output_, &input_gradient_, &weight_gradient_}) {
      if (*product) bytes = std::max(bytes, (*product)->workspace_bytes());
    }
    return std::max(scratch_bytes() + bytes, own_->workspace_bytes());
  }

  std::int64_t gradient_gap() const override { return own_->gradient_gap(); }
  std::string algorithms() const override {
    const auto name = [](const std::optional<Product>& product) {
      return product ? product->name() : std::string(device::kOwnKernel);
    };
    return device::LayerAlgorithms{name(output_), name(input_gradient_), name(weight_gradient_)}.text();
  }

  void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) override {
    if (!output_) return own_->output(call, x, weight, bias, y);
    if (padded_ && padded_->output_sizes()) {
      return padded_->output<Grid>(call, x, weight, y, [&](const void* padded, const void* rows, void* part) {
        output_->run(*call.stream, {.a = padded, .b = rows, .d = part}, rest(call));
      });
    }
    void* const sums = rounds_after(output_, out_) ? call.workspace : y;
    const void* const added = bias_as_wanted(call, bias);
    output_->run(*call.stream, {.a = weight, .b = x, .d = sums, .bias = added}, rest(call));
    if (sums == y) return;
    device::launch_cast<Grid>(call.stream, device::Cast::downcast, out_.dtype, sums, y, out_.elements());
  }
  void output_and_gelu(const ProductCall& call, const void* x, const void* weight, const float* bias, void* pre,
                       void* y) override {
    if (!output_) return own_->output_and_gelu(call, x, weight, bias, pre, y);
    if (device::writes_aux(output_->form().epilogue)) {
      const void* const added = bias_as_wanted(call, bias);
      return output_->run(*call.stream, {.a = weight, .b = x, .d = y, .bias = added, .written_aux = pre}, rest(call));
    }
    void* const sums = rounds_after(output_, out_) ? call.workspace : pre;
    output_->run(*call.stream, {.a = weight, .b = x, .d = sums, .bias = bias}, rest(call));
    launch_gelu<Grid>(call.stream, out_.dtype, static_cast<const float*>(sums), pre, y, out_.elements());
  }

  void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) override {
    if (!input_gradient_) return own_->input_gradient(call, dy, weight, dx);
    if (padded_) {
      return padded_->input_gradient<Grid>(call, dy, weight, [&](const void* padded) {
        input_gradient_->run(*call.stream, {.a = padded, .b = dy, .d = dx}, rest(call));
      });
    }
    input_gradient_->run(*call.stream, {.a = weight, .b = dy, .d = dx}, rest(call));
  }
  void gelu_input_gradient(const ProductCall& call, const void* dz, const void* weight, const void* pre,
                           void* dpre) override {
    if (!input_gradient_) return own_->gelu_input_gradient(call, dz, weight, pre, dpre);
    if (input_gradient_->form().epilogue == device::Epilogue::gelu_gradient) {
      return input_gradient_->run(*call.stream, {.a = weight, .b = dz, .d = dpre, .aux = pre}, rest(call));
    }
    void* const sums = rounds_after(input_gradient_, in_) ? call.workspace : dpre;
    input_gradient_->run(*call.stream, {.a = weight, .b = dz, .d = sums}, rest(call));
    launch_gelu_gradient<Grid>(call.stream, in_.dtype, static_cast<const float*>(sums), pre, dpre, in_.elements());
  }

  /// Without the bias's gradient; if the product computes that in its epilogue, it is discarded.
  void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) override {
    if (!weight_gradient_) return own_->weight_gradient(call, x, dy, dw);
    float* const unwanted = sums_bias() ? static_cast<float*>(call.workspace) : nullptr;
    weight_gradient_->run(*call.stream, {.a = x, .b = dy, .d = dw, .b_sums = unwanted}, rest(call));
  }
  void bias_gradient(const ProductCall& call, const void* dy, float* db) override { own_->bias_gradient(call, dy, db); }
  void weight_and_bias_gradients(const ProductCall& call, const void* x, const void* dy, float* dw,
                                 float* db) override {
    if (!sums_bias()) return GeluProducts::weight_and_bias_gradients(call, x, dy, dw, db);
    weight_gradient_->run(*call.stream, {.a = x, .b = dy, .d = dw, .b_sums = db}, rest(call));
  }

 private:
  /// Whether the product computes fp32 for a low-precision tensor.
  static bool rounds_after(const std::optional<Product>& product, const TensorSpec& spec) {
    return product && product->form().types.result != spec.dtype;
  }
  bool sums_bias() const {
    return weight_gradient_ && weight_gradient_->form().epilogue == device::Epilogue::sums_of_b;
  }
  const void* bias_as_wanted(const ProductCall& call, const float* bias) const {
    const DType type = output_->form().bias;
    if (bias == nullptr || type == DType::f32) return bias;
    device::launch_cast<Grid>(call.stream, device::Cast::downcast, type, bias, call.workspace, features_);
    return call.workspace;
  }
  std::size_t scratch_bytes() const {
    std::int64_t floats = sums_bias() || rounds_bias() ? features_ : 0;
    if (rounds_after(output_, out_)) floats = std::max(floats, out_.elements());
    if (rounds_after(input_gradient_, in_)) floats = std::max(floats, in_.elements());
    return std::max(aligned_for_libraries(static_cast<std::size_t>(floats) * sizeof(float)),
                    padded_ ? padded_->workspace_bytes() : 0);
  }
  bool rounds_bias() const { return output_ && output_->form().bias != DType::f32; }
  void* rest(const ProductCall& call) const { return static_cast<std::byte*>(call.workspace) + scratch_bytes(); }

  std::unique_ptr<GeluProducts> own_;
  TensorSpec in_, out_;
  std::int64_t features_;
  std::optional<PaddedWeight> padded_;
  std::optional<Product> output_, input_gradient_, weight_gradient_;
};

}  // namespace lockstep::ops
