// conv by cuDNN, each direction with a plan of its own; where there is none, and for the bias and its gradient, by
// kernels over a Grid. The workspace holds the weight, or its gradient, with channels last, then the output in fp32,
// where it is narrow and has a bias (it is rounded once, after that), and behind them cuDNN's own.
#include <algorithm>

#include "backend/cuda/cuda_grid.cuh"
#include "backend/cuda/cudnn_convolution.hpp"
#include "ops/conv/conv_grid.hpp"
#include "ops/conv/conv_layout.hpp"
#include "ops/conv/conv_weight_grid.hpp"

namespace lockstep::ops {

namespace {

using backend::CudaGrid;
using backend::CudnnConvolution;
using Direction = CudnnConvolution::Direction;

class CudnnConv final : public LayerProducts {
 public:
  CudnnConv(const KernelRequest& request, const ConvShape& shape, std::unique_ptr<LayerProducts> own)
      : own_(std::move(own)),
        shape_(shape),
        products_(request.products),
        out_(request.outputs[0]),
        weights_(request.parameters[0].elements()),
        filter_{shape.image.channels / shape.groups, shape.window.height.kernel * shape.window.width.kernel},
        rounds_after_(shape.bias && is_narrow(out_.dtype)) {
    const backend::ConvolutionLayout layout = convolution_layout(shape);
    const auto wanted = backend::PlanParts::of(request.plan);
    const auto make = [&](Direction direction, DType result, const std::string& name) {
      return CudnnConvolution::make(*request.queue, direction, layout, {products_, result, request.tf32},
                                    {request.node, name});
    };
    output_ = make(Direction::output, rounds_after_ ? DType::f32 : out_.dtype, wanted.output);
    rounds_after_ = rounds_after_ && output_;
    if (request.mode != Mode::training) return;
    image_gradient_ = make(Direction::image_gradient, request.inputs[0].dtype, wanted.input_gradient);
    weight_gradient_ = make(Direction::weight_gradient, DType::f32, wanted.weight_gradient);
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const auto* direction : {&output_, &image_gradient_, &weight_gradient_}) {
      if (*direction) bytes = std::max(bytes, (*direction)->workspace_bytes());
    }
    return packed_bytes() + sums_bytes() + bytes;
  }

  [[nodiscard]] std::string plan() const override {
    const auto name = [](const std::optional<CudnnConvolution>& direction) {
      return direction ? direction->name() : std::string(backend::kOwnKernel);
    };
    return backend::PlanParts{name(output_), name(image_gradient_), name(weight_gradient_)}.text();
  }

  void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) override {
    if (!output_) return own_->output(call, x, weight, bias, y);
    void* const sums = rounds_after_ ? behind(call, packed_bytes()) : y;
    output_->run(*call.queue, {x, packed_weight(call, weight), sums}, rest(call));
    if (bias == nullptr) return;
    backend::with_element(out_.dtype, [&]<class T>(T /*element*/) {
      CudaGrid::each(call.queue, out_.elements(),
                     AddBiasBody<T>{static_cast<const float*>(sums), bias, static_cast<T*>(y), shape_.filters});
    });
  }

  void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) override {
    if (!image_gradient_) return own_->input_gradient(call, dy, weight, dx);
    image_gradient_->run(*call.queue, {dy, packed_weight(call, weight), dx}, rest(call));
  }

  void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) override {
    if (!weight_gradient_) return own_->weight_gradient(call, x, dy, dw);
    float* packed = is_packed() ? dw : static_cast<float*>(call.workspace);
    weight_gradient_->run(*call.queue, {dy, x, packed}, rest(call));
    if (packed != dw) CudaGrid::each(call.queue, weights_, ChannelsFirstBody{packed, dw, filter_});
  }

  void bias_gradient(const ProductCall& call, const void* dy, float* db) override { own_->bias_gradient(call, dy, db); }

 private:
  [[nodiscard]] bool is_packed() const { return weight_needs_no_copy(shape_); }
  /// For the gradient, which is in fp32; the weight takes as much, or half.
  [[nodiscard]] std::size_t packed_bytes() const {
    return is_packed() ? 0 : aligned_for_libraries(static_cast<std::size_t>(weights_) * sizeof(float));
  }
  [[nodiscard]] std::size_t sums_bytes() const {
    return rounds_after_ ? aligned_for_libraries(static_cast<std::size_t>(out_.elements()) * sizeof(float)) : 0;
  }
  [[nodiscard]] static void* behind(const ProductCall& call, std::size_t bytes) {
    return static_cast<std::byte*>(call.workspace) + bytes;
  }
  [[nodiscard]] void* rest(const ProductCall& call) const { return behind(call, packed_bytes() + sums_bytes()); }

  [[nodiscard]] const void* packed_weight(const ProductCall& call, const void* weight) const {
    if (is_packed()) return weight;
    backend::with_element(products_, [&]<class T>(T /*element*/) {
      CudaGrid::each(call.queue, weights_,
                     ChannelsLastBody<T>{static_cast<const T*>(weight), static_cast<T*>(call.workspace), filter_});
    });
    return call.workspace;
  }

  std::unique_ptr<LayerProducts> own_;
  ConvShape shape_;
  DType products_;
  TensorSpec out_;
  std::int64_t weights_;  ///< elements
  FilterSizes filter_;
  bool rounds_after_;
  std::optional<CudnnConvolution> output_, image_gradient_, weight_gradient_;
};

}  // namespace

std::unique_ptr<Kernel> make_conv_cuda(const KernelRequest& request) {
  auto products = make_conv_products<CudaGrid>(request);
  if (products != nullptr && request.queue != nullptr && request.outputs[0].elements() > 0) {
    const ConvShape shape = conv_shape(*request.attributes, request.inputs[0]);
    products = std::make_unique<CudnnConv>(request, shape, std::move(products));
  }
  return make_product_layer<CudaGrid>(request, std::move(products));
}

}  // namespace lockstep::ops
