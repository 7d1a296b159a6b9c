// CudnnConvolution: one direction of a convolution of fixed sizes by cuDNN, summed in fp32 and rounded once, after the
// bias and relu, by a plan that is chosen as described in cudnn_plan.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/cuda/cudnn_plan.hpp"
#include "device/gpu/convolution_layout.hpp"
#include "device/gpu/product_types.hpp"

namespace lockstep::device {

class CudnnConvolution {
 public:
  enum class Direction : std::uint8_t {
    output,           ///< image, weight -> output
    image_gradient,   ///< the output's gradient, weight -> the image's
    weight_gradient,  ///< the output's gradient, image -> the weight's
  };
  struct Kind {
    Direction direction = Direction::output;
    bool bias = false;  ///< added to the output, one number per filter
    ProductTypes types;
    bool relu = false;  ///< applied to the output, after the bias
  };
  struct Operands {
    const void *first = nullptr, *second = nullptr;  ///< in the direction's order
    const float* bias = nullptr;                     ///< [filters]; only for an output with a bias
    void* result = nullptr;
  };
  static constexpr std::int64_t kMaxWorkspace = std::int64_t{256} << 20;  ///< bytes

  /// Returns nothing if cuDNN has no such plan but refused ones, which are given by their names, or is known to be
  /// wrong. Throws Error(usage) if cuDNN does not propose the requested one.
  [[nodiscard]] static std::optional<CudnnConvolution> make(const CudnnTarget& target, const GpuPlace& place,
                                                            const Kind& kind, const ConvolutionLayout& layout,
                                                            const WantedAlgorithm& wanted,
                                                            const std::vector<std::string>& refused = {});

  std::size_t workspace_bytes() const { return plan_->workspace_bytes(); }
  const std::string& name() const { return plan_->name(); }  ///< see CudnnPlan
  const CudnnPlan& plan() const { return *plan_; }
  /// Enqueues it on the stream.
  void run(const GpuStream& stream, const Operands& operands, void* workspace) const;

 private:
  explicit CudnnConvolution(std::shared_ptr<const CudnnPlan> plan) : plan_(std::move(plan)) {}

  std::shared_ptr<const CudnnPlan> plan_;
};

}  // namespace lockstep::device
