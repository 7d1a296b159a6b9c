// KernelSet: the kernels of a graph's nodes, made for one worker, and WorkerStream, on which they run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"
#include "ops/upcast.hpp"
#include "step/exec/device.hpp"

namespace lockstep::exec {

/// What the kernels of one worker run on, and what a program needs besides them. On a CPU it is the calling thread, and
/// work is done when a call returns; on a GPU it is a stream, on which work is launched in order. As Casts it casts
/// low-precision operands. All memory is the device's.
class WorkerStream : public ops::Casts {
 public:
  /// Memory for the activations of a program: at least this many bytes, 64-byte aligned. A GPU worker has one block for
  /// all of its programs: it may have moved since the last call, and another program may have overwritten it.
  [[nodiscard]] virtual std::byte* reserve_arena(std::size_t bytes) = 0;
  /// Passed to kernels as the stream; null on the CPU.
  [[nodiscard]] virtual void* of_kernels() { return nullptr; }
  /// What follows belongs to this layer of this step; for errors.
  virtual void enter(std::uint64_t /*step*/, const std::string& /*layer*/) {}
  /// sum[i] = left[i] + right[i], added in float32. `sum` may be one of the operands.
  virtual void add(DType dtype, const void* left, const void* right, void* sum, std::int64_t n) = 0;
  /// values[i] *= factors[i / columns]
  virtual void scale(float* values, const float* factors, std::int64_t n, std::int64_t columns) = 0;
};

/// For errors: "conv 'stem'".
[[nodiscard]] std::string layer_label(const Node& node);

class KernelSet {
 public:
  /// Throws Error(configuration) for an op that has no kernel for this device. `algorithms`: algorithms() of the rank
  /// whose choice must be used, or empty; throws Error(usage) if one is not available. `keeps_weights`: see
  /// KernelRequest.
  KernelSet(const Graph& graph, Mode mode, const Device& device, int worker = 0,
            const std::vector<std::string>& algorithms = {}, bool keeps_weights = true);

  std::int32_t count() const { return kernels_.size(); }
  /// Null for a view.
  Kernel* at(std::int32_t node) const { return kernels_[node].get(); }
  std::size_t workspace_bytes(std::int32_t node) const;
  /// What the kernels run on.
  WorkerStream& stream() const { return *stream_; }
  /// The algorithms that kernels chose from a library's, by layer: "linear 'head': ..."; empty on the CPU.
  std::vector<std::string> algorithms() const;
  /// layer_label() of the node.
  const std::string& label(std::int32_t node) const { return labels_[node]; }
  /// Samples of a loss that counts them by weights (graph/weighted_loss.hpp); 0 for other nodes.
  std::int64_t weighted_samples(std::int32_t node) const { return weighted_samples_[node]; }
  /// Samples of a loss, whose kernel takes no gradient of its output; 0 for other nodes.
  std::int64_t loss_samples(std::int32_t node) const { return loss_samples_[node]; }
  /// Elements of each input of a loss's kernel, or a sum's of losses, whose gradients are scaled; empty for other
  /// nodes.
  const std::vector<std::int64_t>& loss_inputs(std::int32_t node) const { return loss_inputs_[node]; }
  /// Whether something is computed in float16, whose gradients would underflow without scaling.
  bool scales_loss() const { return scales_loss_; }

 private:
  std::shared_ptr<WorkerStream> stream_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::string> labels_;
  std::vector<std::vector<std::int64_t>> loss_inputs_;
  std::vector<std::int64_t> weighted_samples_, loss_samples_;
  bool scales_loss_ = false;
};

}  // namespace lockstep::exec
