// The functors of adafactor's kernels that need its steps: norms, and the update. See adafactor_kernels.hpp.
#pragma once

#include <cstdint>

#include "core/divisor.hpp"
#include "core/filter_sizes.hpp"
#include "core/host_device.hpp"
#include "step/optim/adafactor_kernels.hpp"

namespace lockstep::optim {

/// Neighbouring elements of a chunk.
struct AdafactorPack {
  FloatPack parameter, gradient;
  FloatPack squares;  ///< estimated means of the gradient's; of a vector, its moments
};

/// Reads and writes packs of a chunk. All that it needs often is in registers.
class AdafactorElements {
 public:
  LOCKSTEP_HOST_DEVICE AdafactorElements(const AdafactorOperands& of, const AdafactorChunk& chunk)
      : order_(chunk.of.of.at.order),
        first_(chunk.of.of.at.first),
        elements_(is_set(of.update.overflow) ? 0 : chunk.of.of.at.elements),
        parameter_(chunk.of.of.parameter),
        gradient_(chunk.of.direction + first_),
        moments_(chunk.moments == nullptr ? nullptr : chunk.moments + first_),
        copy_(chunk.of.copy),
        low_precision_(chunk.of.low_precision),
        scattered_(order_.orders_differ()),
        columns_(of.matrices[chunk.matrix].columns),
        row_moments_(of.matrices[chunk.matrix].row_moments),
        column_moments_(of.matrices[chunk.matrix].column_moments),
        divisor_(elements_ == 0 || moments_ != nullptr ? 1 : *of.matrices[chunk.matrix].divisor) {}

  LOCKSTEP_HOST_DEVICE bool of_vector() const { return moments_ != nullptr; }
  /// Calls use(pack, its AdafactorPack) for the packs of a lane; none if the update is skipped. Two are read before the
  /// first one is used.
  template <class Use>
  LOCKSTEP_HOST_DEVICE void for_lane(std::int64_t lane, const Use& use) const {
    const std::int64_t packs = (elements_ + kPack - 1) / kPack;
    for (std::int64_t pack = lane; pack < packs; pack += 2 * kFactoredLanes) {
      const std::int64_t next = pack + kFactoredLanes;
      AdafactorPack values = read(pack), more{};
      if (next < packs) more = read(next);
      use(pack, values);
      if (next < packs) use(next, more);
    }
  }
  LOCKSTEP_HOST_DEVICE void write_gradient(std::int64_t pack, const FloatPack& values) const {
    write_up_to(left(pack), gradient_ + pack * kPack, values, true);
  }
  LOCKSTEP_HOST_DEVICE void write_moments(std::int64_t pack, const FloatPack& values) const {
    write_up_to(left(pack), moments_ + pack * kPack, values, true);
  }
  /// With the low-precision copy.
  LOCKSTEP_HOST_DEVICE void write_parameter(std::int64_t pack, const FloatPack& values) const {
    const std::int64_t i = first_ + pack * kPack, count = left(pack);
    if (!scattered_ && count >= kPack) {
      device::write_pack(parameter_ + i, values);
      if (low_precision_ == DType::f32) return;
      device::Pack<std::uint16_t, kPack> copy{};
      LOCKSTEP_UNROLL
      for (int k = 0; k < kPack; ++k) copy.at[k] = UpdateOperands::rounded(low_precision_, values.at[k]);
      return device::write_pack(copy_ + i, copy);
    }
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPack; ++k) {
      if (k >= count) continue;
      const std::int64_t place = scattered_ ? order_.place(i + k) : i + k;
      parameter_[place] = values.at[k];
      if (low_precision_ != DType::f32) copy_[place] = UpdateOperands::rounded(low_precision_, values.at[k]);
    }
  }

 private:
  LOCKSTEP_HOST_DEVICE std::int64_t left(std::int64_t pack) const { return elements_ - pack * kPack; }
  LOCKSTEP_HOST_DEVICE AdafactorPack read(std::int64_t pack) const {
    const std::int64_t at = pack * kPack, count = left(pack);
    return {read_parameter(first_ + at, count), read_up_to(count, gradient_ + at, true),
            of_vector() ? read_up_to(count, moments_ + at, true) : squares_of_matrix(first_ + at, count)};
  }
  LOCKSTEP_HOST_DEVICE FloatPack read_parameter(std::int64_t i, std::int64_t count) const {
    if (!scattered_) return read_up_to(count, parameter_ + i, true);
    FloatPack pack{};
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPack; ++k) {
      if (k < count) pack.at[k] = parameter_[order_.place(i + k)];
    }
    return pack;
  }
  /// Of elements from i on in the tensor.
  LOCKSTEP_HOST_DEVICE FloatPack squares_of_matrix(std::int64_t i, std::int64_t count) const {
    std::int64_t row = i / columns_, column = i - row * columns_.value();
    float share = row_moments_[row] / divisor_;
    FloatPack squares{};
    if (columns_.value() % kPack == 0) {
      squares = device::read_pack<kPack>(column_moments_ + column);
      LOCKSTEP_UNROLL
      for (float& one : squares.at) one *= share;
      return squares;
    }
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPack; ++k) {
      if (k >= count) continue;
      squares.at[k] = share * column_moments_[column];
      if (++column < columns_.value() || k + 1 >= count) continue;
      column = 0;
      share = row_moments_[++row] / divisor_;
    }
    return squares;
  }

  const FilterSizes& order_;
  std::int64_t first_, elements_;
  float *parameter_, *gradient_, *moments_;
  std::uint16_t* copy_;
  DType low_precision_;
  bool scattered_;
  Divisor columns_;
  const float *row_moments_, *column_moments_;
  float divisor_;
};

/// Updates the moments of vectors and clips their gradients; sums the squares of a chunk's elements and of its steps.
/// Of an update that is skipped the sums are 0.
struct StepSquaresFunctor {
  AdafactorOperands of;
  const AdafactorChunk* chunks;
  double* lanes;                                  ///< [chunks, 2 * kFactoredLanes]
  double *parameter_squares, *direction_squares;  ///< by chunk
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t c) const {
    const AdafactorChunk& chunk = chunks[c];
    if (chunk.of.of.group != of.update.group) return;
    double* const mine = lanes + c * 2 * kFactoredLanes;
    const float factor = of.update.factor();
    const AdafactorElements elements(of, chunk);
    group.each(kFactoredLanes, [&](std::int64_t lane) {
      double parameters[kPack] = {}, steps[kPack] = {};
      elements.for_lane(lane, [&](std::int64_t pack, AdafactorPack& values) {
        if (elements.of_vector()) update_moments(elements, pack, factor, values);
        LOCKSTEP_UNROLL
        for (int k = 0; k < kPack; ++k) {
          const double parameter = values.parameter.at[k];
          const double step = of.formula.over_root(values.gradient.at[k], values.squares.at[k]);
          parameters[k] += parameter * parameter;
          steps[k] += step * step;
        }
      });
      mine[lane] = sum_of_pack(parameters);
      mine[kFactoredLanes + lane] = sum_of_pack(steps);
    });
    group.barrier();
    group.once([&] {
      parameter_squares[c] = sum_in_order(kFactoredLanes, [=](std::int64_t lane) { return mine[lane]; });
      direction_squares[c] =
          sum_in_order(kFactoredLanes, [=](std::int64_t lane) { return mine[kFactoredLanes + lane]; });
    });
  }

 private:
  LOCKSTEP_HOST_DEVICE void update_moments(const AdafactorElements& elements, std::int64_t pack, float factor,
                                           AdafactorPack& values) const {
    if (factor < 1) {
      LOCKSTEP_UNROLL
      for (float& one : values.gradient.at) one *= factor;
      elements.write_gradient(pack, values.gradient);
    }
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPack; ++k) {
      const float gradient = values.gradient.at[k];
      values.squares.at[k] = averaged(values.squares.at[k], gradient * gradient, of.formula.weight);
    }
    elements.write_moments(pack, values.squares);
  }
};

struct AdafactorUpdateFunctor {
  AdafactorOperands of;
  const AdafactorChunk* chunks;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t c) const {
    const AdafactorChunk& chunk = chunks[c];
    if (!of.takes(chunk.of.of.group)) return;
    const AdafactorElements elements(of, chunk);
    const float keep = chunk.of.of.decay ? of.formula.keep : 1;
    const float factor = of.formula.rate * of.update.trust[chunk.number];
    group.each(kFactoredLanes, [&](std::int64_t lane) {
      elements.for_lane(lane, [&](std::int64_t pack, AdafactorPack& values) {
        LOCKSTEP_UNROLL
        for (int k = 0; k < kPack; ++k) {
          const float step = of.formula.over_root(values.gradient.at[k], values.squares.at[k]);
          values.parameter.at[k] = values.parameter.at[k] * keep - factor * step;
        }
        elements.write_parameter(pack, values.parameter);
      });
    });
  }
};

}  // namespace lockstep::optim
