// add_losses: two losses of the same samples as one. A sample's loss is the weighted sum of both, each divided by what
// counts in that sample (elements, tokens, pixels that are not ignored), so that it is known as soon as the sample is,
// whichever rank has it; a loss of which nothing counts in a sample adds nothing. All samples count 1. Several losses
// are a chain, in which what has been added so far has the weight 1 and counts 1.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

struct LossTerm {
  const float *loss, *count;  ///< [samples]
  float weight;

  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return count[i] > 0 ? weight * (loss[i] / count[i]) : 0.0F; }
  /// Of the term's loss, if the sum's gradient is `gradient`.
  LOCKSTEP_HOST_DEVICE float gradient(std::int64_t i, float gradient) const {
    return count[i] > 0 ? gradient * weight / count[i] : 0.0F;
  }
};

/// Of what a call reads: (first loss, its count, second loss, its count).
struct LossTerms {
  explicit LossTerms(const KernelRequest& request)
      : samples(request.inputs[0].elements()),
        weights{static_cast<float>(request.attributes->number("first")),
                static_cast<float>(request.attributes->number("second"))} {}
  template <class Call>
  LossTerm of(const Call& call, std::size_t term) const {
    return {static_cast<const float*>(call.inputs[2 * term]), static_cast<const float*>(call.inputs[2 * term + 1]),
            weights[term]};
  }
  std::int64_t samples;
  float weights[2];  // NOLINT(*-avoid-c-arrays): a kernel copies it
};

}  // namespace lockstep::ops
