// The target of a loss or a metric that goes element by element: of the prediction's shape in f32, [b] for a prediction
// [b, 1], and if it is binary, labels 0 and 1 in i32 of these shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Two outputs, sums over a sample. Throws Error(configuration) that begins with `op`.
[[nodiscard]] Signature elements_signature(const std::string& op, std::span<const TensorSpec> inputs, bool binary);

/// `size` elements for each of `batch` samples.
struct ElementRows {
  std::int64_t batch = 0, size = 0;
  bool labels = false;  ///< the target is of i32

  ElementRows() = default;
  explicit ElementRows(const KernelRequest& request);
  std::int64_t elements() const { return batch * size; }
  /// Of target(): a sample's labels as floats.
  std::size_t workspace_bytes() const { return labels ? size * sizeof(float) : 0; }
  /// A sample's target; labels are written to `workspace`, which has room for `size` floats then. Throws Error(data)
  /// if one is neither 0 nor 1.
  const float* target(const void* all, std::int64_t sample, void* workspace) const;
  /// Throws Error(data) that begins with `op` if a target of the sample is not from 0 to 1.
  void require_shares(const std::string& op, const float* targets) const;
};

}  // namespace lockstep::ops
