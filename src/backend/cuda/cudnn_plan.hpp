// CudnnPlan: a graph of cuDNN's operations, and the plan that computes it. It is chosen when it is made: the first that
// cuDNN proposes which is deterministic, rounds no operand (to TF32 only where that is allowed), and is not a transform
// with an error of its own (FFT, Winograd on large tiles). So all shards are computed by the same code.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "backend/cuda/cudnn_target.hpp"
#include "backend/cuda/gpu_queue.hpp"
#include "backend/gpu/plan_parts.hpp"

namespace cudnn_frontend::graph {
class Graph;
}

namespace lockstep::backend {

class CudnnPlan {
 public:
  using Graph = cudnn_frontend::graph::Graph;
  struct Request {
    CudnnTarget target;
    const GpuPlace& place;  ///< that errors name
    WantedPlan wanted;
    std::string operations;           ///< in words, with all sizes and types: equal ones share a plan
    bool tensor_cores = false;        ///< whether their engines may be taken; with operands in fp32 they mean TF32
    std::int64_t most_workspace = 0;  ///< bytes
  };

  /// `describe` puts the operations into an empty graph. Null where cuDNN has no plan for them. Throws Error(usage)
  /// where it does not propose the one that is wanted.
  [[nodiscard]] static std::shared_ptr<const CudnnPlan> make(const Request& request,
                                                             const std::function<void(Graph&)>& describe);
  CudnnPlan(const CudnnPlan&) = delete;
  CudnnPlan& operator=(const CudnnPlan&) = delete;
  ~CudnnPlan();

  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// "cuDNN eng4_k2=3": the engine and its settings, in cuDNN's words.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Puts it on the queue's stream, which is the one that it was made for; `call` is what errors name.
  void run(const GpuQueue& queue, const char* call, std::unordered_map<std::int64_t, void*> operands,
           void* workspace) const;

 private:
  CudnnPlan();

  std::unique_ptr<Graph> graph_;
  std::size_t workspace_bytes_ = 0;
  std::string name_;
};

}  // namespace lockstep::backend
