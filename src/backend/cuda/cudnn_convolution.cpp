#include "backend/cuda/cudnn_convolution.hpp"

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <unordered_map>
#include <vector>

namespace lockstep::backend {

namespace {

namespace graphs = cudnn_frontend::graph;
using cudnn_frontend::DataType_t;
using cudnn_frontend::NumericalNote_t;
using Tensor = std::shared_ptr<graphs::Tensor_attributes>;
using Direction = CudnnConvolution::Direction;

// What operands are called in the graph.
constexpr std::int64_t kFirst = 1, kSecond = 2, kResult = 3;

template <std::size_t kCount>
std::vector<std::int64_t> list(const std::array<std::int64_t, kCount>& values) {
  return {values.begin(), values.end()};
}

DataType_t type_of(DType dtype) {
  return dtype == DType::bf16 ? DataType_t::BFLOAT16 : dtype == DType::f16 ? DataType_t::HALF : DataType_t::FLOAT;
}

Tensor operand(graphs::Graph& graph, const ImageLayout& layout, std::int64_t name) {
  return graph.tensor(
      graphs::Tensor_attributes().set_uid(name).set_dim(list(layout.sizes)).set_stride(list(layout.strides)));
}

template <class Attributes>
Attributes with_window(const ConvolutionLayout& layout) {
  Attributes attributes;
  attributes.set_pre_padding(list(layout.before)).set_post_padding(list(layout.after));
  attributes.set_stride(list(layout.stride)).set_dilation(list(layout.dilation));
  return attributes;
}

void describe(graphs::Graph& graph, Direction direction, const ConvolutionLayout& layout, const ProductTypes& types) {
  graph.set_io_data_type(type_of(types.factors))
      .set_intermediate_data_type(DataType_t::FLOAT)
      .set_compute_data_type(DataType_t::FLOAT);
  Tensor result;
  const ImageLayout* of_result = nullptr;
  if (direction == Direction::output) {
    result = graph.conv_fprop(operand(graph, layout.image, kFirst), operand(graph, layout.weight, kSecond),
                              with_window<graphs::Conv_fprop_attributes>(layout));
    of_result = &layout.output;
  } else if (direction == Direction::image_gradient) {
    result = graph.conv_dgrad(operand(graph, layout.output, kFirst), operand(graph, layout.weight, kSecond),
                              with_window<graphs::Conv_dgrad_attributes>(layout));
    of_result = &layout.image;
  } else {
    result = graph.conv_wgrad(operand(graph, layout.output, kFirst), operand(graph, layout.image, kSecond),
                              with_window<graphs::Conv_wgrad_attributes>(layout));
    of_result = &layout.weight;
  }
  result->set_output(true).set_uid(kResult).set_data_type(type_of(types.result));
  result->set_dim(list(of_result->sizes)).set_stride(list(of_result->strides));
}

constexpr const char* kLibrary = "cuDNN ";  // begins the names of plans

/// The proposed plan of this name.
bool build(graphs::Graph& graph, const std::string& wanted) {
  for (std::int64_t i = 0; i < graph.get_execution_plan_count(); ++i) {
    std::string name;
    if (graph.get_plan_name_at_index(i, name).is_good() && kLibrary + name == wanted)
      return graph.build_plan_at_index(i).is_good();
  }
  return false;
}

/// False: cuDNN has no plan for it. What else may be wrong shows where a plan runs.
bool choose(graphs::Graph& graph, cudnnHandle_t handle, const ProductTypes& types, const std::string& wanted) {
  if (graph.validate().is_bad() || graph.build_operation_graph(handle).is_bad()) return false;
  using cudnn_frontend::HeurMode_t;
  if (graph.create_execution_plans({HeurMode_t::A, HeurMode_t::FALLBACK}).is_bad()) return false;
  std::vector<NumericalNote_t> unwanted = {NumericalNote_t::NONDETERMINISTIC,
                                           NumericalNote_t::DOWN_CONVERT_INPUTS,
                                           NumericalNote_t::REDUCED_PRECISION_REDUCTION,
                                           NumericalNote_t::FFT,
                                           NumericalNote_t::WINOGRAD_TILE_4x4,
                                           NumericalNote_t::WINOGRAD_TILE_6x6,
                                           NumericalNote_t::WINOGRAD_TILE_13x13};
  // With operands in fp32 they would compute in TF32.
  if (types.factors == DType::f32 && !types.tf32) unwanted.push_back(NumericalNote_t::TENSOR_CORE);
  graph.deselect_numeric_notes(unwanted);
  graph.deselect_workspace_greater_than(CudnnConvolution::kMostWorkspace);
  if (graph.check_support().is_bad()) return false;
  return wanted.empty() ? graph.build_plans().is_good() : build(graph, wanted);
}

void check(cudnn_frontend::error_t status, const char* call, const GpuPlace& place) {
  if (status.is_bad()) throw gpu_error(place, call, static_cast<int>(status.get_code()), status.get_message());
}

}  // namespace

CudnnConvolution::CudnnConvolution() : graph_(std::make_unique<graphs::Graph>()) {}
CudnnConvolution::CudnnConvolution(CudnnConvolution&&) noexcept = default;
CudnnConvolution& CudnnConvolution::operator=(CudnnConvolution&&) noexcept = default;
CudnnConvolution::~CudnnConvolution() = default;

std::optional<CudnnConvolution> CudnnConvolution::make(const GpuQueue& queue, Direction direction,
                                                       const ConvolutionLayout& layout, const ProductTypes& types,
                                                       const WantedPlan& wanted) {
  if (wanted.name == kOwnKernel) return std::nullopt;
  CudnnConvolution made;
  describe(*made.graph_, direction, layout, types);
  if (!choose(*made.graph_, queue.cudnn(), types, wanted.name)) {
    if (!wanted.name.empty()) throw plan_not_there(queue.place(), wanted);
    return std::nullopt;
  }
  std::int64_t bytes = 0;
  check(made.graph_->get_workspace_size(bytes), "cuDNN's workspace size", queue.place());
  check(made.graph_->get_plan_name(made.name_), "cuDNN's plan name", queue.place());
  made.name_ = kLibrary + made.name_;
  made.workspace_bytes_ = static_cast<std::size_t>(bytes);
  return made;
}

void CudnnConvolution::run(const GpuQueue& queue, const Operands& operands, void* workspace) const {
  std::unordered_map<std::int64_t, void*> named = {{kFirst, const_cast<void*>(operands.first)},
                                                   {kSecond, const_cast<void*>(operands.second)},
                                                   {kResult, operands.result}};
  check(graph_->execute(queue.cudnn(), named, workspace), "a convolution of cuDNN", queue.place());
}

}  // namespace lockstep::backend
