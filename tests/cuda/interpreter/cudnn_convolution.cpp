#include "cuda/interpreter/cudnn_convolution.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/interpreter/library_proposals.hpp"

namespace lockstep::ptx {

namespace {

using Kind = CudnnOperation::Kind;

CudnnOperation::Axes axes_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  const auto values = values_of<std::int64_t>(of, name);
  if (values.size() != 2) cudnn_unknown("a convolution of another number of dimensions");
  return {values[0], values[1]};
}

/// The attributes of a convolution's operation, by direction.
struct ConvolutionNames {
  Kind kind;
  cudnnBackendAttributeName_t first, second, result, window, alpha, beta;
};
constexpr ConvolutionNames kForward = {Kind::output,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
constexpr ConvolutionNames kBackwardData = {Kind::image_gradient,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
constexpr ConvolutionNames kBackwardFilter = {Kind::weight_gradient,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

class ConvolutionReader {
 public:
  explicit ConvolutionReader(CudnnProgram::Tensors& tensors) : tensors_(tensors) {}

  CudnnOperation operation(const CudnnDescriptor& of) {
    switch (of.type) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return convolution(of, kForward);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return convolution(of, kBackwardData);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return convolution(of, kBackwardFilter);
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return pointwise(of);
      default:
        cudnn_unknown(fmt::format("operation {}", static_cast<int>(of.type)));
    }
  }

 private:
  std::int64_t tensor(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
    const std::int64_t uid = add_tensor(tensors_, of, name);
    if (tensors_.at(uid).is_by_value) cudnn_unknown("a tensor that is a value");
    return uid;
  }

  CudnnOperation convolution(const CudnnDescriptor& of, const ConvolutionNames& names) {
    const auto window = descriptor_of(of, names.window);
    if (value_of<cudnnConvolutionMode_t>(*window, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION) {
      cudnn_unknown("a convolution that is none of machine learning's");
    }
    if (value_of<cudnnDataType_t>(*window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT) {
      cudnn_unknown("a convolution that isn't added in fp32");
    }
    if (value_of<float>(of, names.alpha) != 1 || value_of<float>(of, names.beta) != 0) {
      cudnn_unknown("a convolution that is scaled or added");
    }
    return {.kind = names.kind,
            .first = tensor(of, names.first),
            .second = tensor(of, names.second),
            .result = tensor(of, names.result),
            .before = axes_of(*window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
            .after = axes_of(*window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
            .stride = axes_of(*window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
            .dilation = axes_of(*window, CUDNN_ATTR_CONVOLUTION_DILATIONS)};
  }

  CudnnOperation pointwise(const CudnnDescriptor& of) {
    const auto how = descriptor_of(of, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    CudnnOperation operation{.first = tensor(of, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                             .result = tensor(of, CUDNN_ATTR_OPERATION_POINTWISE_YDESC)};
    const auto mode = value_of<cudnnPointwiseMode_t>(*how, CUDNN_ATTR_POINTWISE_MODE);
    if (value_of<cudnnDataType_t>(*how, CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT) {
      cudnn_unknown("what is computed point by point in another type than fp32");
    }
    if (mode == CUDNN_POINTWISE_ADD) {
      operation.kind = Kind::add;
      operation.second = tensor(of, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    } else if (mode == CUDNN_POINTWISE_RELU_FWD) {
      operation.kind = Kind::relu;
    } else if (mode != CUDNN_POINTWISE_IDENTITY) {
      cudnn_unknown(fmt::format("pointwise mode {}", static_cast<int>(mode)));
    }
    return operation;
  }

  CudnnProgram::Tensors& tensors_;
};

bool lies_with_channels_last(const CudnnTensor& tensor) {
  return tensor.strides[1] == 1 || tensor.sizes[1] == 1;
}

}  // namespace

ConvolutionProgram::ConvolutionProgram(const CudnnDescriptor& graph) {
  ConvolutionReader reader(tensors_);
  for (const auto& operation : attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS).of) {
    operations_.push_back(reader.operation(*operation));
  }
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const CudnnOperation& one = operations_[i];
    if (one.is_convolution() != (i == 0)) cudnn_unknown("a graph that isn't one convolution and what follows it");
    if (i > 0 && one.first != operations_[i - 1].result) cudnn_unknown("operations that don't follow each other");
    if (tensor(one.result).is_virtual != (i + 1 < operations_.size())) {
      cudnn_unknown("a result between operations that is in memory, or one at the end that isn't");
    }
  }
}

bool ConvolutionProgram::has(Kind kind) const {
  return std::ranges::any_of(operations_, [&](const CudnnOperation& one) { return one.kind == kind; });
}

bool ConvolutionProgram::is_low_precision() const {
  return tensor(operations_.at(0).first).element != Element::fp32;
}

// What tests/cuda/cudnn_plans_test.cpp found cuDNN 9.19 to refuse for an A100 and an H100, of what lockstep asks for.
std::string ConvolutionProgram::refusal() const {
  const CudnnOperation& convolution = operations_.at(0);
  const CudnnTensor &first = tensor(convolution.first), &second = tensor(convolution.second);
  const CudnnTensor& result = tensor(operations_.back().result);
  if (first.element != second.element) return "factors of two types";
  if (!lies_with_channels_last(first) || !lies_with_channels_last(second) || !lies_with_channels_last(result)) {
    return "channels that don't lie last";
  }
  const bool widens = result.element != first.element;
  if (widens && result.element != Element::fp32) return "a result of a third type";
  if (widens && operations_.size() == 1) return "a result in fp32 that nothing follows";
  const auto is_odd = [](const CudnnTensor& one) { return one.sizes[1] % 2 != 0; };
  if (widens && convolution.kind == Kind::weight_gradient && (is_odd(first) || is_odd(second))) {
    return "an odd number of channels of a weight gradient in fp32";
  }
  // Groups: a weight has fewer channels than the image.
  const CudnnTensor& image = convolution.kind == Kind::output           ? first
                             : convolution.kind == Kind::image_gradient ? result
                                                                        : second;
  const CudnnTensor& weight = convolution.kind == Kind::weight_gradient ? result : second;
  const bool has_groups = image.sizes[1] != weight.sizes[1];
  if (has_groups && first.element == Element::bf16 && has(Kind::relu)) return "relu behind a convolution of groups";
  if (has(Kind::relu) && library_lacks("relu")) return "relu";
  if (library_lacks("convolutions")) return "convolutions";
  return "";
}

std::vector<CudnnEngine> ConvolutionProgram::engines() const {
  return {CudnnEngine::unordered, CudnnEngine::tensor_cores, CudnnEngine::greedy, CudnnEngine::in_parts,
          CudnnEngine::plain};
}

std::vector<cudnnBackendNumericalNote_t> ConvolutionProgram::notes(CudnnEngine engine) const {
  if (engine == CudnnEngine::unordered) return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  if (engine == CudnnEngine::tensor_cores) return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  return {};
}

std::int64_t ConvolutionProgram::workspace_bytes(CudnnEngine engine) const {
  if (engine == CudnnEngine::greedy) return kGreedyBytes;
  return engine == CudnnEngine::in_parts ? sums().elements() * static_cast<std::int64_t>(sizeof(float)) : 0;
}

std::int64_t ConvolutionProgram::samples() const {
  const CudnnOperation& convolution = operations_.at(0);
  const bool makes_image = convolution.kind == Kind::image_gradient;
  return tensor(makes_image ? convolution.result : convolution.first).sizes[0];
}

}  // namespace lockstep::ptx
