// CudnnPlan: a graph of cuDNN's operations, and the plan that computes it. It is chosen when it is made: the first that
// cuDNN proposes which is deterministic, rounds no operand (to TF32 only where that is allowed), and is not a transform
// with an error of its own (FFT, Winograd on large tiles). So all shards are computed by the same code.
//
// A plan belongs to a GPU, not to a stream: it is put on any stream's stream, with that stream's handle and workspace.
// cuDNN lets threads call it at once as long as each has a handle of its own, but its makers do not promise that for
// two threads with one plan (https://github.com/pytorch/pytorch/pull/103939), so one at a time puts it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "device/cuda/cudnn_plans.hpp"
#include "device/cuda/cudnn_target.hpp"
#include "device/cuda/gpu_stream.hpp"
#include "device/gpu/wanted_algorithm.hpp"

namespace cudnn_frontend::graph {
class Graph;
}

namespace lockstep::device {

class CudnnPlan {
 public:
  using Graph = cudnn_frontend::graph::Graph;
  struct Request {
    CudnnTarget target;
    const GpuPlace& place;  ///< that errors name
    WantedAlgorithm wanted;
    std::string operations;          ///< in words, with all sizes and types: equal ones share a plan
    bool tensor_cores = false;       ///< whether their engines may be taken; with operands in fp32 they mean TF32
    std::int64_t max_workspace = 0;  ///< bytes
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
  [[nodiscard]] const Graph& graph() const { return *graph_; }  ///< with the plan in it, to be asked more
  /// Enqueues it on the stream; `call` is what errors name. Any thread, several at once.
  void run(const GpuStream& stream, const char* call, std::unordered_map<std::int64_t, void*> operands,
           void* workspace) const;

 private:
  CudnnPlan();
  [[nodiscard]] static std::shared_ptr<const CudnnPlan> make_new(const Request& request,
                                                                 const std::function<void(Graph&)>& describe);

  std::unique_ptr<Graph> graph_;
  mutable std::mutex executing_;  ///< of the graph, while it is enqueued on a stream
  std::size_t workspace_bytes_ = 0;
  std::string name_;
};

}  // namespace lockstep::device
