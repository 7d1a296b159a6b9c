// CudnnPlan: a graph of cuDNN operations, and the plan that computes it. The plan is chosen when it is made: the first
// one proposed by cuDNN that is deterministic, does not round operands (to TF32 only if that is allowed), and is not a
// transform with additional error (FFT, Winograd on large tiles). So all micro-batches are computed by the same code.
// Whoever uses it tries it first (library_trial.cuh), and asks for another one where it is wrong.
//
// A plan belongs to a GPU, not to a stream: it can be enqueued on any stream, with that stream's handle and workspace.
// cuDNN may be called by several threads concurrently as long as each has its own handle, but this is not promised for
// two threads with one plan (https://github.com/pytorch/pytorch/pull/103939), so a plan is enqueued by one thread at a
// time.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

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
    const GpuPlace& place;  ///< to be named in errors
    WantedAlgorithm wanted;
    std::string operations;            ///< in words, with all sizes and types: equal descriptions share a plan
    bool tensor_cores = false;         ///< whether engines with tensor cores may be used; for fp32 operands this means
                                       ///< TF32
    std::int64_t max_workspace = 0;    ///< bytes
    std::vector<std::string> refused;  ///< names of plans that are not to be used
  };

  /// `describe` adds the operations to an empty graph. Null if cuDNN has no plan for them. Throws Error(usage) if cuDNN
  /// does not propose the requested plan.
  [[nodiscard]] static std::shared_ptr<const CudnnPlan> make(const Request& request,
                                                             const std::function<void(Graph&)>& describe);
  CudnnPlan(const CudnnPlan&) = delete;
  CudnnPlan& operator=(const CudnnPlan&) = delete;
  ~CudnnPlan();

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// "cuDNN eng4_k2=3": the engine and its settings, in cuDNN's notation.
  const std::string& name() const { return name_; }
  const Graph& graph() const { return *graph_; }  ///< with the plan, for further queries
  /// What `trial` found, which is called once for all plans of this name and these operations of the GPU's: whether the
  /// plan is right.
  bool is_right(const std::function<bool()>& trial) const;
  /// Enqueues it on the stream; `call` is named in errors. Thread-safe.
  void run(const GpuStream& stream, const char* call, std::unordered_map<std::int64_t, void*> operands,
           void* workspace) const;

 private:
  CudnnPlan();
  [[nodiscard]] static std::shared_ptr<const CudnnPlan> make_new(const Request& request,
                                                                 const std::function<void(Graph&)>& describe);

  std::unique_ptr<Graph> graph_;
  mutable std::mutex executing_;  ///< held while the graph is enqueued
  std::size_t workspace_bytes_ = 0;
  std::string name_;
  std::shared_ptr<CudnnTrial> trial_;
};

}  // namespace lockstep::device
