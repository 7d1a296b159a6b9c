#include "cuda/numerical_notes.hpp"

#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "device/cuda/cudnn_frontend.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

// The frontend only allows to exclude proposals by their notes. The plan that was built has them, too.
struct OpenGraph : cudnn_frontend::graph::Graph {
  static const auto& plans_of(const Graph& graph) { return graph.*&OpenGraph::plans; }
};

}  // namespace

std::string unwanted_notes(const CudnnPlan& plan, bool tensor_cores) {
  const auto& plans = OpenGraph::plans_of(plan.graph());
  LOCKSTEP_CHECK(plans.candidate >= 0, "a plan was chosen");
  const auto& chosen = plans.execution_plans.at(static_cast<std::size_t>(plans.candidate));
  std::vector<std::string> unwanted;
  for (const cudnnBackendNumericalNote_t note : chosen->getAllNumericNotes()) {
    const bool harmless = note == CUDNN_NUMERICAL_NOTE_WINOGRAD || note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP ||
                          (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && tensor_cores);
    if (!harmless) unwanted.push_back(cudnn_frontend::to_string(note));
  }
  return fmt::format("{}", fmt::join(unwanted, ", "));
}

}  // namespace lockstep::device
