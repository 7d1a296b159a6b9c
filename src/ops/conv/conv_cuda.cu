// conv by cuDNN, each direction with a plan of its own; where there is none, and for the bias and its gradient, by
// kernels over a Grid. The workspace holds the weight, or its gradient, with channels last, and behind it cuDNN's own.
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

class ConvCuda final : public Kernel {
 public:
  ConvCuda(const KernelRequest& request, const ConvShape& shape)
      : own_(request),
        shape_(shape),
        outputs_(request.outputs[0].elements()),
        weights_(request.parameters[0].elements()),
        filter_{shape.image.channels / shape.groups, shape.window.height.kernel * shape.window.width.kernel} {
    const backend::ConvolutionLayout layout = convolution_layout(shape);
    output_ = CudnnConvolution::make(*request.queue, Direction::output, layout);
    if (request.mode != Mode::training) return;
    image_gradient_ = CudnnConvolution::make(*request.queue, Direction::image_gradient, layout);
    weight_gradient_ = CudnnConvolution::make(*request.queue, Direction::weight_gradient, layout);
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const auto* direction : {&output_, &image_gradient_, &weight_gradient_}) {
      if (*direction) bytes = std::max(bytes, (*direction)->workspace_bytes());
    }
    return packed_bytes() + bytes;
  }

  [[nodiscard]] std::string plan() const override {
    const auto name = [](const std::optional<CudnnConvolution>& direction) {
      return direction ? "cuDNN " + direction->name() : "own kernel";
    };
    return "output: " + name(output_) + "; input's gradient: " + name(image_gradient_) +
           "; weight's gradient: " + name(weight_gradient_);
  }

  void forward(const ForwardCall& call) override {
    if (!output_) return own_.forward(call);
    output_->run(*call.queue, {input(call), packed_weight(call), output(call)}, rest(call.workspace));
    if (!shape_.bias) return;
    CudaGrid::each(call.queue, outputs_,
                   AddBiasBody{static_cast<const float*>(call.parameters[1]), output(call), shape_.filters});
  }

  void backward(const BackwardCall& call) override {
    const float* dy = output_gradient(call);
    if (float* dx = input_gradient(call); dx != nullptr && image_gradient_) {
      image_gradient_->run(*call.queue, {dy, packed_weight(call), dx}, rest(call.workspace));
    } else {
      own_.input_gradient(call);
    }
    if (float* dw = call.parameter_gradients[0]; dw != nullptr && weight_gradient_) {
      float* packed = is_packed() ? dw : static_cast<float*>(call.workspace);
      weight_gradient_->run(*call.queue, {dy, input(call), packed}, rest(call.workspace));
      if (packed != dw) CudaGrid::each(call.queue, weights_, ChannelsFirstBody{packed, dw, filter_});
    } else {
      own_.weight_gradient(call);
    }
    own_.bias_gradient(call);
  }

 private:
  [[nodiscard]] bool is_packed() const { return weight_needs_no_copy(shape_); }
  /// A multiple of what cuDNN wants its workspace aligned to.
  [[nodiscard]] std::size_t packed_bytes() const {
    constexpr std::size_t kAlignment = 256;
    const std::size_t bytes = is_packed() ? 0 : static_cast<std::size_t>(weights_) * sizeof(float);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  [[nodiscard]] void* rest(void* workspace) const { return static_cast<std::byte*>(workspace) + packed_bytes(); }

  template <class Call>
  [[nodiscard]] const float* packed_weight(const Call& call) const {
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    if (is_packed()) return weight;
    auto* packed = static_cast<float*>(call.workspace);
    CudaGrid::each(call.queue, weights_, ChannelsLastBody{weight, packed, filter_});
    return packed;
  }

  ConvGrid<CudaGrid> own_;
  ConvShape shape_;
  std::int64_t outputs_, weights_;  ///< elements
  FilterSizes filter_;
  std::optional<CudnnConvolution> output_, image_gradient_, weight_gradient_;
};

}  // namespace

std::unique_ptr<Kernel> make_conv_cuda(const KernelRequest& request) {
  if (request.queue == nullptr || request.outputs[0].elements() == 0) return make_conv_grid<CudaGrid>(request);
  return std::make_unique<ConvCuda>(request, conv_shape(*request.attributes, request.inputs[0]));
}

}  // namespace lockstep::ops
