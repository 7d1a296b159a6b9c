// CudnnAttention: softmax(scale * q k^T) v of fixed sizes in bf16 or fp16 by cuDNN's fused kernels (after Dao and
// others, FlashAttention, 2022), which store no matrix of scores, and its gradients; sums in fp32. The plan is chosen
// as described in cudnn_plan.hpp, for the gradients with the deterministic algorithm, which needs more workspace.
#pragma once

#include <optional>
#include <string>

#include "device/cuda/cudnn_plan.hpp"
#include "device/gpu/attention_layout.hpp"

namespace lockstep::device {

class CudnnAttention {
 public:
  enum class Direction : std::uint8_t { output, gradients };
  struct Operands {
    const void *q = nullptr, *k = nullptr, *v = nullptr;
    void* out = nullptr;        ///< read for the gradients
    float* log_sums = nullptr;  ///< [batch, heads, queries]; written with the output, unless null
    const void* dout = nullptr;
    void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  };
  /// Grows with the square of the positions: 8 samples of 12 heads, 1,024 positions and 64 channels need 201 MB.
  static constexpr std::int64_t kMaxWorkspace = std::int64_t{1} << 30;  ///< bytes

  /// `with_log_sums`: the output's direction saves what the gradients need. Returns nothing if cuDNN has no such plan.
  /// Throws Error(usage) if cuDNN does not propose the requested one.
  [[nodiscard]] static std::optional<CudnnAttention> make(const CudnnTarget& target, const GpuPlace& place,
                                                          Direction direction, const AttentionLayout& layout,
                                                          bool with_log_sums, const WantedAlgorithm& wanted);

  std::size_t workspace_bytes() const { return plan_->workspace_bytes(); }
  const std::string& name() const { return plan_->name(); }  ///< see CudnnPlan
  const CudnnPlan& plan() const { return *plan_; }
  /// Enqueues it on the stream.
  void run(const GpuStream& stream, const Operands& operands, void* workspace) const;

 private:
  explicit CudnnAttention(std::shared_ptr<const CudnnPlan> plan) : plan_(std::move(plan)) {}

  std::shared_ptr<const CudnnPlan> plan_;
};

}  // namespace lockstep::device
