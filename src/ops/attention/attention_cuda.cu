// attention by cuDNN in bf16 and fp16, with one plan for the output and one for the gradients; if either has none,
// where heads share keys (kv_heads), where samples have lengths, and in fp32, by the Grid kernel, for which
// low-precision tensors are upcast.
#include "device/cuda/cuda_grid.cuh"
#include "device/cuda/cudnn_attention.hpp"
#include "device/layer_algorithms.hpp"
#include "ops/attention/attention_grid.hpp"
#include "ops/attention/attention_layout.hpp"
#include "ops/attention/library_attention.hpp"
#include "ops/product_layer_grid.hpp"

namespace lockstep::ops {

namespace {

using device::CudnnAttention;

/// Null if cuDNN cannot compute both.
std::unique_ptr<Kernel> make_cudnn_attention(const KernelRequest& request, const AttentionSizes& sizes) {
  const auto layout = attention_layout(sizes, *common_element(request));
  const bool training = request.mode == Mode::training;
  if (training && !library_gradients_hold(sizes)) return nullptr;
  const auto wanted = device::LayerAlgorithms::of(request.gpu->algorithms);
  const auto plan = [&](CudnnAttention::Direction direction, const std::string& name) {
    return CudnnAttention::make(request.gpu->stream->cudnn_target(), request.gpu->stream->place(), direction, layout,
                                training, {request.node, name});
  };
  auto output = plan(CudnnAttention::Direction::output, wanted.output);
  auto gradients = training && output ? plan(CudnnAttention::Direction::gradients, wanted.input_gradient)
                                      : std::optional<CudnnAttention>();
  if (!output || (training && !gradients)) return nullptr;
  return std::make_unique<LibraryAttention<CudnnAttention>>(sizes, *std::move(output), std::move(gradients));
}

}  // namespace

std::unique_ptr<Kernel> make_attention_cuda(const KernelRequest& request) {
  const auto element = common_element(request);
  if (request.gpu != nullptr && element && is_low_precision(*element)) {
    const AttentionSizes sizes(*request.attributes, request.inputs);
    const bool library = sizes.batch != 0 && sizes.queries != 0 && sizes.group() == 1 && !sizes.padded;
    return library ? make_cudnn_attention(request, sizes) : nullptr;
  }
  const std::string own(device::kOwnKernel);
  return make_attention_grid_of<device::CudaGrid>(request, device::LayerAlgorithms{own, own, ""}.text());
}

}  // namespace lockstep::ops
