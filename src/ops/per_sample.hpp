// Shared by losses and metrics: inputs (prediction, target), outputs (value [b], count [b]), sums over a sample.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Scores of classes: prediction [b, ..., classes] f32; target [b, ...] i32, or of the prediction's shape in f32 (soft
/// or one-hot). Throws Error(configuration) that begins with `op`.
[[nodiscard]] Signature classes_signature(const std::string& op, std::span<const TensorSpec> inputs);

/// The two outputs [b] f32.
[[nodiscard]] Signature per_sample_signature(std::int64_t batch);

/// Rows of scores, `per_sample` of them for each of `batch` samples.
struct ClassRows {
  std::int64_t batch = 0, per_sample = 1, classes = 0;
  bool soft = false;  ///< the target has a weight for each class
  bool ignores = false;
  std::int32_t ignored_index = 0;

  ClassRows() = default;
  explicit ClassRows(const KernelRequest& request);
  std::int64_t rows() const { return batch * per_sample; }
  /// The row's label. Throws Error(data) if it is not one of the classes.
  std::int32_t label(const void* target, std::int64_t row) const;
  /// The class with the largest of a row's values; of equal ones, that of the lower index.
  std::int64_t best_class(const float* values) const;
  /// The class that a row's target names: its label, which throws as label() does, or the best one by its weights.
  std::int64_t target_class(const void* target, std::int64_t row) const;
  /// Whether the row counts: its label is not the ignored one.
  bool counts(const void* target, std::int64_t row) const {
    return soft || !ignores || static_cast<const std::int32_t*>(target)[row] != ignored_index;
  }
};

/// A metric of scores of classes, without its cost and kernels.
[[nodiscard]] OpDef metric_of_classes(const std::string& name, const std::string& doc);

/// The attribute `ignored_index`.
[[nodiscard]] AttributeSpec ignored_index_attribute();
/// The attribute `focal`, and its value; 0 where it is not given.
[[nodiscard]] AttributeSpec focal_attribute();
[[nodiscard]] double focal_of(const Attributes& attributes);

}  // namespace lockstep::ops
