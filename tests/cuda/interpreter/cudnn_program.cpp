#include "cuda/interpreter/cudnn_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "cuda/interpreter/library_proposals.hpp"

namespace lockstep::ptx {

namespace {

using Kind = CudnnOperation::Kind;

[[noreturn]] void cudnn_unknown(const std::string& what) {
  throw std::runtime_error(what + " isn't known");
}

const CudnnDescriptor::Attribute& attribute_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  const auto found = of.attributes.find(name);
  if (found == of.attributes.end()) {
    throw std::runtime_error(
        fmt::format("a descriptor {} without its attribute {}", static_cast<int>(of.type), static_cast<int>(name)));
  }
  return found->second;
}

template <class Value>
Value value_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  return values_of<Value>(of, name).at(0);
}
/// `otherwise`: nothing was said.
template <class Value>
Value value_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name, Value otherwise) {
  return of.attributes.contains(name) ? value_of<Value>(of, name) : otherwise;
}

Element cudnn_element(cudnnDataType_t type) {
  if (type == CUDNN_DATA_FLOAT) return Element::fp32;
  if (type == CUDNN_DATA_HALF) return Element::fp16;
  if (type == CUDNN_DATA_BFLOAT16) return Element::bf16;
  cudnn_unknown(fmt::format("type {}", static_cast<int>(type)));
}

CudnnTensor cudnn_tensor_of(const CudnnDescriptor& of) {
  if (value_of(of, CUDNN_ATTR_TENSOR_IS_BY_VALUE, false)) cudnn_unknown("a tensor that is a value");
  CudnnTensor tensor{.uid = value_of<std::int64_t>(of, CUDNN_ATTR_TENSOR_UNIQUE_ID),
                     .element = cudnn_element(value_of<cudnnDataType_t>(of, CUDNN_ATTR_TENSOR_DATA_TYPE)),
                     .is_virtual = value_of(of, CUDNN_ATTR_TENSOR_IS_VIRTUAL, false),
                     .alignment = value_of<std::int64_t>(of, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
                     .sizes = values_of<std::int64_t>(of, CUDNN_ATTR_TENSOR_DIMENSIONS),
                     .strides = values_of<std::int64_t>(of, CUDNN_ATTR_TENSOR_STRIDES)};
  if (tensor.sizes.size() != 4 || tensor.strides.size() != 4) cudnn_unknown("a tensor of another number of dimensions");
  return tensor;
}

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

class Reader {
 public:
  explicit Reader(CudnnProgram& program) : program_(program) {}

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
    CudnnTensor tensor = cudnn_tensor_of(*descriptor_of(of, name));
    const std::int64_t uid = tensor.uid;
    program_.tensors.insert_or_assign(uid, std::move(tensor));
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

  CudnnProgram& program_;
};

bool lies_with_channels_last(const CudnnTensor& tensor) {
  return tensor.strides[1] == 1 || tensor.sizes[1] == 1;
}

}  // namespace

template <class Value>
std::vector<Value> values_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  const auto& attribute = attribute_of(of, name);
  std::vector<Value> values;
  for (std::size_t at = 0; at + sizeof(Value) <= attribute.bytes.size(); at += sizeof(Value)) {
    Value value{};
    std::memcpy(&value, attribute.bytes.data() + at, sizeof value);
    values.push_back(value);
  }
  return values;
}
template std::vector<void*> values_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name);
template std::vector<std::int64_t> values_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name);

std::shared_ptr<CudnnDescriptor> descriptor_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  return attribute_of(of, name).of.at(0);
}

std::int64_t CudnnTensor::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

CudnnProgram CudnnProgram::of(const CudnnDescriptor& graph) {
  CudnnProgram program;
  Reader reader(program);
  for (const auto& operation : attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS).of) {
    program.operations.push_back(reader.operation(*operation));
  }
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const CudnnOperation& one = program.operations[i];
    if (one.is_convolution() != (i == 0)) cudnn_unknown("a graph that isn't one convolution and what follows it");
    if (i > 0 && one.first != program.operations[i - 1].result)
      cudnn_unknown("operations that don't follow each other");
    if (program.tensors.at(one.result).is_virtual != (i + 1 < program.operations.size())) {
      cudnn_unknown("a result between operations that is in memory, or one at the end that isn't");
    }
  }
  return program;
}

bool CudnnProgram::has(Kind kind) const {
  return std::ranges::any_of(operations, [&](const CudnnOperation& one) { return one.kind == kind; });
}

bool CudnnProgram::is_low_precision() const {
  return tensors.at(operations.at(0).first).element != Element::fp32;
}

// What tests/cuda/cudnn_plans_test.cpp found cuDNN 9.19 to refuse for an A100 and an H100, of what lockstep asks for.
std::string CudnnProgram::refusal() const {
  const CudnnOperation& convolution = operations.at(0);
  const CudnnTensor &first = tensors.at(convolution.first), &second = tensors.at(convolution.second);
  const CudnnTensor& result = tensors.at(operations.back().result);
  if (first.element != second.element) return "factors of two types";
  if (!lies_with_channels_last(first) || !lies_with_channels_last(second) || !lies_with_channels_last(result)) {
    return "channels that don't lie last";
  }
  const bool widens = result.element != first.element;
  if (widens && result.element != Element::fp32) return "a result of a third type";
  if (widens && operations.size() == 1) return "a result in fp32 that nothing follows";
  const auto is_odd = [](const CudnnTensor& tensor) { return tensor.sizes[1] % 2 != 0; };
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

std::int64_t workspace_bytes(const CudnnProgram& program, CudnnEngine engine) {
  if (engine == CudnnEngine::greedy) return std::int64_t{1} << 40;
  return engine == CudnnEngine::in_parts ? program.sums().elements() * static_cast<std::int64_t>(sizeof(float)) : 0;
}

}  // namespace lockstep::ptx
