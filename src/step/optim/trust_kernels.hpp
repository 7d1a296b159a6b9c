// The functors of the kernels that find an optimizer's trust ratios on a GPU (TrustRatio), with the CPU's bits
// (cpu_updater.cpp): a chunk's squares in eight lanes, and the chunks of a tensor as rows are added.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.hpp"
#include "device/row_blocks.hpp"
#include "step/optim/elementwise.hpp"
#include "step/optim/update_kernels.hpp"

namespace lockstep::optim {

/// A chunk of a parameter that this rank updates.
struct MeasuredChunk {
  NormChunk at;                ///< in the blocks of gradients and states
  float* parameter = nullptr;  ///< address of the tensor's first element, which may not be here
  std::int32_t group = 0;
  bool decay = false;
};

struct MeasureOperands {
  UpdateOperands update;
  const MeasuredChunk* chunks;
  double* lanes;                                  ///< [chunks, 2 * kSquareLanes]
  double *parameter_squares, *direction_squares;  ///< by chunk
};

/// Updates the states of a chunk, clips its gradient, and sums its squares. Nothing is changed where an update is
/// skipped.
template <class Formula, std::size_t... kState>
struct MeasureFunctor {
  MeasureOperands of;
  Formula decayed, plain;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t c) const {
    const MeasuredChunk& chunk = of.chunks[c];
    if (chunk.group != of.update.group) return;
    double* const mine = of.lanes + c * 2 * kSquareLanes;
    const bool skipped = is_set(of.update.overflow);
    const float factor = of.update.factor();
    const Formula formula = chunk.decay ? decayed : plain;
    group.each(kSquareLanes, [&](std::int64_t lane) {
      double parameters = 0, directions = 0;
      for (std::int64_t i = lane; i < chunk.at.elements && !skipped; i += kSquareLanes) {
        const std::int64_t at = chunk.at.place(i);
        float& gradient = of.update.gradient[at];
        if (factor < 1) gradient *= factor;
        const float parameter = chunk.parameter[at - chunk.at.tensor];
        formula.measure(parameter, gradient, of.update.states[kState][at]...);
        const auto direction =
            static_cast<double>(formula.direction(parameter, gradient, of.update.states[kState][at]...));
        parameters += static_cast<double>(parameter) * parameter;
        directions += direction * direction;
      }
      mine[lane] = parameters;
      mine[kSquareLanes + lane] = directions;
    });
    group.barrier();
    group.once([&] {
      of.parameter_squares[c] = sum_of(mine);
      of.direction_squares[c] = sum_of(mine + kSquareLanes);
    });
  }

 private:
  static LOCKSTEP_HOST_DEVICE double sum_of(const double* lanes) {
    double sum = 0;
    for (int lane = 0; lane < kSquareLanes; ++lane) sum += lanes[lane];
    return sum;
  }
};

/// The chunks of a parameter among those of this rank's model.
struct TrustedTensor {
  std::int64_t first = 0, chunks = 0;
  std::int64_t elements = 0;
  std::int32_t number = 0;  ///< the parameter's
  std::int32_t group = 0;
  bool has_ratio = false;  ///< false: its factor is 1
};

struct TrustOperands {
  const TrustedTensor* tensors;
  std::int32_t group;
  const double *parameter_squares, *direction_squares;  ///< of all chunks
  double* levels;                                       ///< [2, chunks]: sums of blocks of them
  std::int64_t chunks;
  float* trust;  ///< by parameter
};

template <class Formula>
struct TrustFunctor {
  TrustOperands of;
  Formula decayed;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t t) const {
    const TrustedTensor& tensor = of.tensors[t];
    if (tensor.group != of.group) return;
    const double* const parameter = sum(group, tensor, of.parameter_squares, of.levels);
    const double* const direction = sum(group, tensor, of.direction_squares, of.levels + of.chunks);
    group.once([&] {
      of.trust[tensor.number] =
          tensor.has_ratio ? decayed.ratio(std::sqrt(*parameter), std::sqrt(*direction), tensor.elements) : 1.0F;
    });
  }

 private:
  /// Where the sum is. All levels but none fit into as many numbers as there are chunks.
  template <class Group>
  static LOCKSTEP_HOST_DEVICE const double* sum(const Group& group, const TrustedTensor& tensor, const double* squares,
                                                double* levels) {
    const double* from = squares + tensor.first;
    double* to = levels + tensor.first;
    device::RowBlocks blocks{tensor.chunks};
    while (true) {
      const device::SumBlocksFunctor<device::RowElements<double>, double> level{{from, 1}, blocks, 1, to};
      group.each(blocks.count(), level);
      group.barrier();
      if (blocks.count() == 1) return to;
      from = to;
      blocks = {blocks.count()};
      to += blocks.rows;
    }
  }
};

}  // namespace lockstep::optim
