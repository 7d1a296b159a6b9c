// Metrics that go element by element: what an element x of the prediction with the target t adds to the value and to
// the count. A metric is the one over the other, of all samples: so precision, recall and f1 are those of all elements
// together (micro), whatever the ranks and shards. Of yes or no, x is a logit: above 0 it says yes; and t above 0.5.
#pragma once

#include "device/float_math.hpp"

namespace lockstep::ops {

struct ElementScore {
  float value, count;
};

struct AbsoluteErrorScore {
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    return {device::magnitude_of(x - t), 1};
  }
};

/// Reported as the root of the mean.
struct SquaredErrorScore {
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) { return {(x - t) * (x - t), 1}; }
};

/// Yes or no: 1 or 0. Neither for a NaN, which all sums show then.
struct YesOrNo {
  float said, is;
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE YesOrNo(float x, float t)
      : said(x > 0    ? 1.0F
             : x <= 0 ? 0.0F
                      : x),
        is(t > 0.5F    ? 1.0F
           : t <= 0.5F ? 0.0F
                       : t) {}
};

struct BinaryAccuracyScore {
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    const YesOrNo answer(x, t);
    return {answer.said * answer.is + (1 - answer.said) * (1 - answer.is), 1};
  }
};

struct PrecisionScore {
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    const YesOrNo answer(x, t);
    return {answer.said * answer.is, answer.said};
  }
};

struct RecallScore {
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    const YesOrNo answer(x, t);
    return {answer.said * answer.is, answer.is};
  }
};

/// 2 / (1 / precision + 1 / recall), which is 2 right / (said + is).
struct F1Score {
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE ElementScore of(float x, float t) {
    const YesOrNo answer(x, t);
    return {2 * answer.said * answer.is, answer.said + answer.is};
  }
};

}  // namespace lockstep::ops
