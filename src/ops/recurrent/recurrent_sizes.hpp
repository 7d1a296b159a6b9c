// The sizes of lstm and gru, and how their memory is divided.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// x [batch, steps, in], y [batch, steps, units], kept [batch, steps, kKept, units]; gradients of the gates [batch,
/// steps, kGates, units]. Rows are [batch, steps].
struct RecurrentSizes {
  std::int64_t batch = 0, steps = 0, in = 0, units = 0;
  bool bias = true;

  explicit RecurrentSizes(const KernelRequest& request)
      : batch(request.inputs[0].shape[0]),
        steps(request.inputs[0].shape[1]),
        in(request.inputs[0].shape[2]),
        units(request.outputs[0].shape[2]),
        bias(request.parameters.size() > 2) {}
  LOCKSTEP_HOST_DEVICE std::int64_t rows() const { return batch * steps; }
};

/// The parameters in the op's order; null biases: none.
struct RecurrentWeights {
  const float *ih, *hh, *bias_ih, *bias_hh;
};
template <class Call>
RecurrentWeights weights_of(const Call& call, bool bias) {
  const auto at = [&](std::size_t i) { return static_cast<const float*>(call.parameters[i]); };
  return {at(0), at(1), bias ? at(2) : nullptr, bias ? at(3) : nullptr};
}

/// What backward computes before the gradients of parameters, in its workspace.
template <class Cell>
struct RecurrentGradients {
  float *dx = nullptr, *dh = nullptr;  ///< of the gates' two sides [batch, steps, kGates, units]; may be the same
  float* dy = nullptr;                 ///< of a step's output, from the step after it [batch, units]
  float* carry = nullptr;              ///< [batch, units]
  float* scratch = nullptr;            ///< for sums over rows

  RecurrentGradients(const RecurrentSizes& sizes, void* workspace) {
    const std::int64_t gates = sizes.rows() * Cell::kGates * sizes.units, step = sizes.batch * sizes.units;
    dx = static_cast<float*>(workspace);
    dh = Cell::kSameGradients ? dx : dx + gates;
    dy = dh + gates;
    carry = dy + step;
    scratch = carry + step;
  }
  /// Of the workspace, without `scratch`.
  [[nodiscard]] static std::size_t bytes(const RecurrentSizes& sizes) {
    const std::int64_t sides = Cell::kSameGradients ? 1 : 2;
    return static_cast<std::size_t>(sides * sizes.rows() * Cell::kGates * sizes.units + 2 * sizes.batch * sizes.units) *
           sizeof(float);
  }
};

}  // namespace lockstep::ops
