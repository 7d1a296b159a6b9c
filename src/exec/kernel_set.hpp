// KernelSet: the kernels of a graph's nodes, made for one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/device.hpp"
#include "exec/worker_stream.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep::exec {

class KernelSet {
 public:
  /// Throws Error(configuration) for an op that has no kernel for this device. `algorithms`: algorithms() of the rank
  /// whose choice is to be taken, or nothing; throws Error(usage) where it cannot be.
  KernelSet(const Graph& graph, Mode mode, const Device& device, int worker = 0,
            const std::vector<std::string>& algorithms = {});

  /// Null for a view.
  [[nodiscard]] Kernel* at(std::int32_t node) const { return kernels_[static_cast<std::size_t>(node)].get(); }
  [[nodiscard]] std::size_t workspace_bytes(std::int32_t node) const;
  /// What the kernels run on.
  [[nodiscard]] WorkerStream& stream() const { return *stream_; }
  /// What kernels chose of a library's algorithms, by layer: "linear 'head': ..."; empty on the CPU.
  [[nodiscard]] std::vector<std::string> algorithms() const;
  /// The node's layer, for errors: "conv 'stem'".
  [[nodiscard]] const std::string& label(std::int32_t node) const { return labels_[static_cast<std::size_t>(node)]; }
  /// Elements of each input of a loss, whose gradients are scaled; empty for all other nodes.
  [[nodiscard]] const std::vector<std::int64_t>& loss_inputs(std::int32_t node) const {
    return loss_inputs_[static_cast<std::size_t>(node)];
  }
  /// Whether something is computed in float16, whose gradients would vanish without it.
  [[nodiscard]] bool scales_loss() const { return scales_loss_; }

 private:
  std::shared_ptr<WorkerStream> stream_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::string> labels_;
  std::vector<std::vector<std::int64_t>> loss_inputs_;
  bool scales_loss_ = false;
};

}  // namespace lockstep::exec
