// triplet: max(0, |a - p| - |a - n| + margin), the loss of an anchor, a
// positive and a negative (Schroff, Kalenichenko and Philbin, "FaceNet: A
// Unified Embedding for Face Recognition and Clustering", 2015; with Euclidean
// distances, as PyTorch's TripletMarginLoss). A prediction [b, 3 d] is these
// three vectors a sample; the target is not read.
#pragma once

#include <cstdint>

#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Added to a squared distance, whose root has no slope at 0.
inline constexpr float kSmallestDistance = 1e-12F;

/// Saved: [b, 2], 1 over each distance; 0 where the loss is 0.
struct TripletSizes {
  std::int64_t samples = 0, size = 0;  ///< size: of one of the three vectors
  float margin = 1;

  explicit TripletSizes(const KernelRequest& request)
      : samples(request.inputs[0].shape[0]),
        size(request.inputs[0].shape[1] / 3),
        margin(request.attributes->number("margin")) {}
};

}  // namespace lockstep::ops
