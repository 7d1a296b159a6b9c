// Metrics that go element by element: what an element x of the prediction with the target t adds to the value and to
// the count. A metric is the one over the other, of all samples: so precision, recall, f1 and iou are those of all
// elements together (micro), whatever the ranks and micro-batches. For binary metrics x is a logit, positive above 0,
// and t is positive above 0.5 (kBinary).
#pragma once

#include "device/float_math.hpp"

namespace lockstep::ops {

struct ElementScore {
  float value, count;
};

struct AbsoluteErrorScore {
  static constexpr bool kBinary = false;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    return {device::magnitude_of(x - t), 1};
  }
};

/// Reported as the root of the mean.
struct SquaredErrorScore {
  static constexpr bool kBinary = false;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) { return {(x - t) * (x - t), 1}; }
};

/// 1 for positive, 0 for negative; a NaN stays one, so all sums show it.
struct BinaryAnswer {
  float predicted, actual;
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE BinaryAnswer(float x, float t)
      : predicted(x > 0    ? 1.0F
                  : x <= 0 ? 0.0F
                           : x),
        actual(t > 0.5F    ? 1.0F
               : t <= 0.5F ? 0.0F
                           : t) {}
};

struct BinaryAccuracyScore {
  static constexpr bool kBinary = true;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    const BinaryAnswer answer(x, t);
    return {answer.predicted * answer.actual + (1 - answer.predicted) * (1 - answer.actual), 1};
  }
};

struct PrecisionScore {
  static constexpr bool kBinary = true;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    const BinaryAnswer answer(x, t);
    return {answer.predicted * answer.actual, answer.predicted};
  }
};

struct RecallScore {
  static constexpr bool kBinary = true;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    const BinaryAnswer answer(x, t);
    return {answer.predicted * answer.actual, answer.actual};
  }
};

/// 2 / (1 / precision + 1 / recall), which is 2 * true positives / (predicted positives + actual positives).
struct F1Score {
  static constexpr bool kBinary = true;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    const BinaryAnswer answer(x, t);
    return {2 * answer.predicted * answer.actual, answer.predicted + answer.actual};
  }
};

/// Intersection over union (Jaccard's index): of what is predicted to be positive or is, the share that is both.
struct IouScore {
  static constexpr bool kBinary = true;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    const BinaryAnswer answer(x, t);
    const float both = answer.predicted * answer.actual;
    return {both, answer.predicted + answer.actual - both};
  }
};

}  // namespace lockstep::ops
