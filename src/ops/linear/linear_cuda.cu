// linear by cuBLASLt, each of its products with a plan of its own; where there is none, and for the bias's gradient,
// whose order of additions no library states, by the kernels of linear_grid.hpp.
//
// An output that is narrow and has a bias is made in fp32 in the workspace, and rounded from there: cuBLASLt would
// round before it adds the bias, or want a narrow one.
#include <algorithm>

#include "backend/cuda/cuda_grid.cuh"
#include "backend/cuda/lt_product.hpp"
#include "ops/linear/linear_grid.hpp"

namespace lockstep::ops {

namespace {

using backend::LtProduct;

class LtLinear final : public LayerProducts {
 public:
  LtLinear(const KernelRequest& request, std::unique_ptr<LayerProducts> own)
      : own_(std::move(own)), out_(request.outputs[0]) {
    const LinearSizes sizes = linear_sizes(request);
    const bool bias = request.parameters.size() > 1;
    const auto types = [&](DType result) { return backend::ProductTypes{request.products, result, request.tf32}; };
    rounds_after_ = bias && is_narrow(out_.dtype);
    const auto wanted = backend::PlanParts::of(request.plan);
    output_ = LtProduct::make(*request.queue, output_product(sizes), types(rounds_after_ ? DType::f32 : out_.dtype),
                              bias, {request.node, wanted.output});
    rounds_after_ = rounds_after_ && output_;
    if (request.mode != Mode::training) return;
    input_gradient_ = LtProduct::make(*request.queue, input_gradient_product(sizes), types(request.inputs[0].dtype),
                                      false, {request.node, wanted.input_gradient});
    weight_gradient_ = LtProduct::make(*request.queue, weight_gradient_product(sizes), types(DType::f32), false,
                                       {request.node, wanted.weight_gradient});
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const auto* product : {&output_, &input_gradient_, &weight_gradient_}) {
      if (*product) bytes = std::max(bytes, (*product)->workspace_bytes());
    }
    return sums_bytes() + bytes;
  }

  [[nodiscard]] std::string plan() const override {
    const auto name = [](const std::optional<LtProduct>& product) {
      return product ? product->name() : std::string(backend::kOwnKernel);
    };
    return backend::PlanParts{name(output_), name(input_gradient_), name(weight_gradient_)}.text();
  }

  void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) override {
    if (!output_) return own_->output(call, x, weight, bias, y);
    void* const sums = rounds_after_ ? call.workspace : y;
    output_->run(*call.queue, {weight, x, bias, sums}, rest(call));
    if (!rounds_after_) return;
    backend::put_cast<backend::CudaGrid>(call.queue, backend::Cast::narrow, out_.dtype, sums, y, out_.elements());
  }
  void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) override {
    if (!input_gradient_) return own_->input_gradient(call, dy, weight, dx);
    input_gradient_->run(*call.queue, {weight, dy, nullptr, dx}, rest(call));
  }
  void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) override {
    if (!weight_gradient_) return own_->weight_gradient(call, x, dy, dw);
    weight_gradient_->run(*call.queue, {x, dy, nullptr, dw}, rest(call));
  }
  void bias_gradient(const ProductCall& call, const void* dy, float* db) override { own_->bias_gradient(call, dy, db); }

 private:
  /// Of the output in fp32, a multiple of what libraries want their workspace aligned to.
  [[nodiscard]] std::size_t sums_bytes() const {
    return rounds_after_ ? aligned_for_libraries(static_cast<std::size_t>(out_.elements()) * sizeof(float)) : 0;
  }
  [[nodiscard]] void* rest(const ProductCall& call) const {
    return static_cast<std::byte*>(call.workspace) + sums_bytes();
  }

  std::unique_ptr<LayerProducts> own_;
  TensorSpec out_;
  bool rounds_after_ = false;
  std::optional<LtProduct> output_, input_gradient_, weight_gradient_;
};

}  // namespace

std::unique_ptr<Kernel> make_linear_cuda(const KernelRequest& request) {
  auto products = make_linear_products<backend::CudaGrid>(request);
  if (products != nullptr && request.queue != nullptr) {
    products = std::make_unique<LtLinear>(request, std::move(products));
  }
  return make_product_layer<backend::CudaGrid>(request, std::move(products));
}

}  // namespace lockstep::ops
