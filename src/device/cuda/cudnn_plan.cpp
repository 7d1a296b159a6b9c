#include "device/cuda/cudnn_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "device/cuda/cudnn_frontend.hpp"
#include "device/layer_algorithms.hpp"

namespace lockstep::device {

namespace {

using cudnn_frontend::HeurMode_t;
using cudnn_frontend::NumericalNote_t;
using Graph = CudnnPlan::Graph;

constexpr const char* kLibrary = "cuDNN ";  // prefix of the names of plans

/// Returns false if cuDNN cannot compute these operations on this GPU.
bool propose(Graph& graph, const CudnnTarget& target) {
  if (target.described != nullptr) {
    graph.set_device_properties(target.described).set_sm_version(target.architecture);
    if (graph.validate().is_bad() || graph.build_operation_graph().is_bad()) return false;
  } else if (graph.validate().is_bad() || graph.build_operation_graph(target.handle).is_bad()) {
    return false;
  }
  return graph.create_execution_plans({HeurMode_t::A, HeurMode_t::FALLBACK}).is_good();
}

void strike_unwanted(Graph& graph, const CudnnPlan::Request& request) {
  std::vector<NumericalNote_t> unwanted = {NumericalNote_t::NONDETERMINISTIC,
                                           NumericalNote_t::DOWN_CONVERT_INPUTS,
                                           NumericalNote_t::REDUCED_PRECISION_REDUCTION,
                                           NumericalNote_t::FFT,
                                           NumericalNote_t::WINOGRAD_TILE_4x4,
                                           NumericalNote_t::WINOGRAD_TILE_6x6,
                                           NumericalNote_t::WINOGRAD_TILE_13x13};
  if (!request.tensor_cores) unwanted.push_back(NumericalNote_t::TENSOR_CORE);
  graph.deselect_numeric_notes(unwanted);
  graph.deselect_workspace_greater_than(request.max_workspace);
}

/// Builds the first of the proposed plans that has this name, or any if it is empty, and is not refused.
bool build(Graph& graph, const std::string& wanted, const std::vector<std::string>& refused) {
  for (std::int64_t i = 0; i < graph.get_execution_plan_count(); ++i) {
    std::string name;
    if (graph.get_plan_name_at_index(i, name).is_bad()) continue;
    name = kLibrary + name;
    if ((!wanted.empty() && name != wanted) || std::find(refused.begin(), refused.end(), name) != refused.end())
      continue;
    if (graph.build_plan_at_index(i).is_good()) return true;
    if (!wanted.empty()) return false;
  }
  return false;
}

/// Returns false if there is no such plan. Other problems show when one is run.
bool choose(Graph& graph, const CudnnPlan::Request& request) {
  if (!propose(graph, request.target)) return false;
  strike_unwanted(graph, request);
  if (graph.check_support().is_bad()) return false;
  if (request.wanted.name.empty() && request.refused.empty()) return graph.build_plans().is_good();
  return build(graph, request.wanted.name, request.refused);
}

void check(cudnn_frontend::error_t status, const char* call, const GpuPlace& place) {
  if (status.is_bad()) throw gpu_error(place, call, static_cast<int>(status.get_code()), status.get_message());
}

}  // namespace

CudnnPlan::CudnnPlan() : graph_(std::make_unique<Graph>()) {}
CudnnPlan::~CudnnPlan() = default;

std::shared_ptr<const CudnnPlan> CudnnPlan::make(const Request& request, const std::function<void(Graph&)>& describe) {
  if (request.wanted.name == kOwnKernel) return nullptr;
  if (request.target.made == nullptr) return make_new(request, describe);
  const std::string key = fmt::format("{}, tensor cores {}, {}, not {}", request.operations, request.tensor_cores,
                                      request.wanted.name, fmt::join(request.refused, ", "));
  return request.target.made->find_or_make(key, [&] { return make_new(request, describe); });
}

std::shared_ptr<const CudnnPlan> CudnnPlan::make_new(const Request& request,
                                                     const std::function<void(Graph&)>& describe) {
  std::shared_ptr<CudnnPlan> made(new CudnnPlan);
  describe(*made->graph_);
  if (!choose(*made->graph_, request)) {
    if (!request.wanted.name.empty()) throw algorithm_not_there(request.place, request.wanted);
    return nullptr;
  }
  std::int64_t bytes = 0;
  check(made->graph_->get_workspace_size(bytes), "cuDNN's workspace size", request.place);
  check(made->graph_->get_plan_name(made->name_), "cuDNN's plan name", request.place);
  made->name_ = kLibrary + made->name_;
  made->workspace_bytes_ = bytes;
  made->trial_ = request.target.made == nullptr ? std::make_shared<CudnnTrial>()
                                                : request.target.made->trial_of(request.operations, made->name_);
  return made;
}

bool CudnnPlan::is_right(const std::function<bool()>& trial) const {
  const std::lock_guard lock(trial_->mutex);
  if (!trial_->right) trial_->right = trial();
  return *trial_->right;
}

void CudnnPlan::run(const GpuStream& stream, const char* call, std::unordered_map<std::int64_t, void*> operands,
                    void* workspace) const {
  const std::lock_guard lock(executing_);
  check(graph_->execute(stream.cudnn(), operands, workspace), call, stream.place());
}

}  // namespace lockstep::device
