// CudnnConvolution: one direction of a convolution of fixed sizes by cuDNN, summed in fp32. Its engine is chosen when
// it is made: the first that cuDNN proposes which is deterministic, rounds no operand (to TF32 only where that is
// allowed), and is not a transform with an error of its own (FFT, Winograd on large tiles). So all shards are computed
// by the same code.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/cuda/gpu_queue.hpp"
#include "backend/gpu/convolution_layout.hpp"
#include "backend/gpu/plan_parts.hpp"
#include "backend/gpu/product_types.hpp"

namespace cudnn_frontend::graph {
class Graph;
}

namespace lockstep::backend {

class CudnnConvolution {
 public:
  enum class Direction : std::uint8_t {
    output,           ///< image, weight -> output
    image_gradient,   ///< the output's gradient, weight -> the image's
    weight_gradient,  ///< the output's gradient, image -> the weight's
  };
  struct Operands {
    const void *first = nullptr, *second = nullptr;  ///< as the direction has them
    void* result = nullptr;
  };
  static constexpr std::int64_t kMostWorkspace = std::int64_t{256} << 20;  ///< bytes

  /// None where cuDNN has no such engine. Throws Error(usage) where it does not propose the plan that is wanted.
  [[nodiscard]] static std::optional<CudnnConvolution> make(const GpuQueue& queue, Direction direction,
                                                            const ConvolutionLayout& layout, const ProductTypes& types,
                                                            const WantedPlan& wanted);
  CudnnConvolution(CudnnConvolution&&) noexcept;
  CudnnConvolution& operator=(CudnnConvolution&&) noexcept;
  CudnnConvolution(const CudnnConvolution&) = delete;
  CudnnConvolution& operator=(const CudnnConvolution&) = delete;
  ~CudnnConvolution();

  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Puts it on the queue's stream.
  void run(const GpuQueue& queue, const Operands& operands, void* workspace) const;
  /// "cuDNN eng4_k2=3": the engine and its settings, in cuDNN's words.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  CudnnConvolution();

  std::unique_ptr<cudnn_frontend::graph::Graph> graph_;
  std::size_t workspace_bytes_ = 0;
  std::string name_;
};

}  // namespace lockstep::backend
