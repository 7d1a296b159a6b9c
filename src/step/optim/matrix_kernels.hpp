// The functors of the kernels that update matrices on a GPU by steps of the whole (MatrixStep), with the CPU's bits: of
// each chunk, what its step is made of, and after the step has been made, the update.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/tensor.hpp"
#include "step/optim/trust_kernels.hpp"
#include "step/optim/update_kernels.hpp"

namespace lockstep::optim {

/// A chunk of a matrix that this rank updates.
struct MatrixChunk {
  MeasuredChunk of;
  float* direction = nullptr;        ///< of the whole matrix, in the model's order; later its step
  DType low_precision = DType::f32;  ///< type of the low-precision copy; f32: none
  std::uint16_t* copy = nullptr;     ///< address of the tensor's first element, which may not be here
};

struct MatrixOperands {
  UpdateOperands update;
  const MatrixChunk* chunks;
};

/// Clips the gradient of a chunk, updates its state, and writes its direction.
template <class Formula>
struct DirectionFunctor {
  MatrixOperands of;
  Formula formula;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t c) const {
    const MatrixChunk& chunk = of.chunks[c];
    if (!of.update.takes(chunk.of.group)) return;
    const float factor = of.update.factor();
    group.each(chunk.of.at.elements, [&](std::int64_t i) {
      const std::int64_t at = chunk.of.at.place(i);
      float& gradient = of.update.gradient[at];
      if (factor < 1) gradient *= factor;
      chunk.direction[chunk.of.at.first + i] = formula.direction(gradient, of.update.states[0][at]);
    });
  }
};

/// Updates a chunk by its step.
template <class Formula>
struct MatrixStepFunctor {
  MatrixOperands of;
  Formula decayed, plain;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t c) const {
    const MatrixChunk& chunk = of.chunks[c];
    if (!of.update.takes(chunk.of.group)) return;
    const Formula formula = chunk.of.decay ? decayed : plain;
    group.each(chunk.of.at.elements, [&](std::int64_t i) {
      const std::int64_t at = chunk.of.at.place(i) - chunk.of.at.tensor;
      float& parameter = chunk.of.parameter[at];
      formula.take(parameter, chunk.direction[chunk.of.at.first + i]);
      if (chunk.low_precision != DType::f32) chunk.copy[at] = UpdateOperands::rounded(chunk.low_precision, parameter);
    });
  }
};

}  // namespace lockstep::optim
