#include "device/cuda/cudnn_convolution.hpp"

#include "core/low_precision.hpp"
#include "device/cuda/cudnn_frontend.hpp"
#include "device/layer_algorithms.hpp"

namespace lockstep::device {

namespace {

namespace graphs = cudnn_frontend::graph;
using cudnn_frontend::DataType_t;
using cudnn_frontend::PointwiseMode_t;
using Tensor = std::shared_ptr<graphs::Tensor_attributes>;
using Direction = CudnnConvolution::Direction;

// Ids of the operands in the graph.
constexpr std::int64_t kFirst = 1, kSecond = 2, kBias = 3, kResult = 4;

Tensor operand(graphs::Graph& graph, const ImageLayout& layout, std::int64_t name) {
  return graph.tensor(cudnn_tensor(layout, name));
}

template <class Attributes>
Attributes with_window(const ConvolutionLayout& layout) {
  Attributes attributes;
  attributes.set_pre_padding(as_list(layout.before)).set_post_padding(as_list(layout.after));
  attributes.set_stride(as_list(layout.stride)).set_dilation(as_list(layout.dilation));
  return attributes;
}

const ImageLayout& result_of(Direction direction, const ConvolutionLayout& layout) {
  if (direction == Direction::output) return layout.output;
  return direction == Direction::image_gradient ? layout.image : layout.weight;
}

Tensor put_product(graphs::Graph& graph, Direction direction, const ConvolutionLayout& layout) {
  if (direction == Direction::output) {
    return graph.conv_fprop(operand(graph, layout.image, kFirst), operand(graph, layout.weight, kSecond),
                            with_window<graphs::Conv_fprop_attributes>(layout));
  }
  if (direction == Direction::image_gradient) {
    return graph.conv_dgrad(operand(graph, layout.output, kFirst), operand(graph, layout.weight, kSecond),
                            with_window<graphs::Conv_dgrad_attributes>(layout));
  }
  return graph.conv_wgrad(operand(graph, layout.output, kFirst), operand(graph, layout.image, kSecond),
                          with_window<graphs::Conv_wgrad_attributes>(layout));
}

graphs::Pointwise_attributes pointwise(PointwiseMode_t mode) {
  return graphs::Pointwise_attributes().set_mode(mode);
}

/// Adds the bias to the sums, which are in fp32 and not in memory.
Tensor put_bias(graphs::Graph& graph, const Tensor& sums, const ImageLayout& output) {
  const std::int64_t filters = output.sizes[1];
  const Tensor bias = graph.tensor(graphs::Tensor_attributes()
                                       .set_uid(kBias)
                                       .set_data_type(DataType_t::FLOAT)
                                       .set_dim({1, filters, 1, 1})
                                       .set_stride({filters, 1, filters, filters}));
  return graph.pointwise(sums, bias, pointwise(PointwiseMode_t::ADD));
}

void describe(graphs::Graph& graph, const CudnnConvolution::Kind& kind, const ConvolutionLayout& layout) {
  set_cudnn_types(graph, kind.types.factors);
  const ImageLayout& of_result = result_of(kind.direction, layout);
  Tensor result = put_product(graph, kind.direction, layout);
  result->set_dim(as_list(of_result.sizes)).set_stride(as_list(of_result.strides));
  if (kind.bias) result = put_bias(graph, result, of_result);
  if (kind.relu) {
    result = graph.pointwise(result, pointwise(PointwiseMode_t::RELU_FWD));
  } else if (!kind.bias && kind.types.result != kind.types.factors) {
    // cuDNN has no engine that only computes fp32 from two-byte factors, but has fused ones that do.
    result = graph.pointwise(result, pointwise(PointwiseMode_t::IDENTITY));
  }
  make_cudnn_output(*result, of_result, kResult);
  result->set_data_type(cudnn_type(kind.types.result));
}

/// cuDNN 9.19 proposes weight gradients of two-byte factors for even numbers of channels and filters. On an H200 most
/// of them were wrong where one of the two was no multiple of 8, that is, where pixels do not begin at multiples of 16
/// bytes; and right where both were.
bool is_known_wrong(const CudnnConvolution::Kind& kind, const ConvolutionLayout& layout) {
  return kind.direction == Direction::weight_gradient && is_low_precision(kind.types.factors) &&
         (layout.image.sizes[1] % 8 != 0 || layout.output.sizes[1] % 8 != 0);
}

std::string in_words(const CudnnConvolution::Kind& kind, const ConvolutionLayout& l) {
  std::string text =
      fmt::format("convolution, direction {}, bias {}, relu {}, {} to {}", static_cast<int>(kind.direction), kind.bias,
                  kind.relu, name_of(kind.types.factors), name_of(kind.types.result));
  for (const auto* image : {&l.image, &l.weight, &l.output}) text += sizes_in_words(*image);
  for (const auto* axes : {&l.before, &l.after, &l.stride, &l.dilation})
    text += fmt::format(", {}", fmt::join(*axes, " "));
  return text;
}

}  // namespace

std::optional<CudnnConvolution> CudnnConvolution::make(const CudnnTarget& target, const GpuPlace& place,
                                                       const Kind& kind, const ConvolutionLayout& layout,
                                                       const WantedAlgorithm& wanted,
                                                       const std::vector<std::string>& refused) {
  if (is_known_wrong(kind, layout)) {
    if (!wanted.name.empty() && wanted.name != kOwnKernel) throw algorithm_not_there(place, wanted);
    return std::nullopt;
  }
  const bool tensor_cores = kind.types.factors != DType::f32 || kind.types.tf32;
  auto plan = CudnnPlan::make({target, place, wanted, in_words(kind, layout), tensor_cores, kMaxWorkspace, refused},
                              [&](graphs::Graph& graph) { describe(graph, kind, layout); });
  if (plan == nullptr) return std::nullopt;
  return CudnnConvolution(std::move(plan));
}

void CudnnConvolution::run(const GpuStream& stream, const Operands& operands, void* workspace) const {
  std::unordered_map<std::int64_t, void*> named = {{kFirst, const_cast<void*>(operands.first)},
                                                   {kSecond, const_cast<void*>(operands.second)},
                                                   {kResult, operands.result}};
  if (operands.bias != nullptr) named[kBias] = const_cast<float*>(operands.bias);
  plan_->run(stream, "a convolution of cuDNN", std::move(named), workspace);
}

}  // namespace lockstep::device
