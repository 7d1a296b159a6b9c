// linear's sizes.
#pragma once

#include "core/host_device.hpp"
#include "core/low_precision.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// x [rows, in], weight [out, in], y [rows, out]
struct LinearSizes {
  std::int64_t rows = 0, in = 0, out = 0;
  std::int64_t gap = 0;  ///< elements between rows of dy
  LOCKSTEP_HOST_DEVICE std::int64_t dy_step() const { return out + gap; }
};

/// Rows of a low-precision copy of dy begin at multiples of 16 bytes: the fast kernels of libraries require this, and a
/// vocabulary may have 50,257 entries.
inline LinearSizes linear_sizes(const KernelRequest& request) {
  constexpr std::int64_t kAligned = 8;
  const Shape& weight = request.parameters[0].shape;
  const std::int64_t in = weight[1], out = weight[0];
  const bool copied = is_low_precision(request.compute_type) && request.outputs[0].dtype != request.compute_type;
  const std::int64_t copys = copied ? (kAligned - out % kAligned) % kAligned : 0;
  return {in == 0 ? 0 : request.inputs[0].elements() / in, in, out,
          request.rounded_gradient.rounds() ? request.rounded_gradient.gap : copys};
}

}  // namespace lockstep::ops
