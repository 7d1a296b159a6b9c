// batch_norm's output and its input's gradient on a Grid, from numbers that each channel has: element by element, or in
// packs of channels.
#pragma once

#include "core/divisor.hpp"
#include "device/gpu/grid.hpp"
#include "device/gpu/pack.hpp"
#include "ops/activations/activations.hpp"

namespace lockstep::ops {

/// How [rows, channels] are distributed over threads if all channels are packs: a thread has one pack of channels, in
/// kRows rows that lie `step` apart. It reads what belongs to its channels once, and all its rows before it writes;
/// neighbouring threads read neighbouring packs.
template <int kRowsOfThread>
struct RowsOfPacks {
  static constexpr int kRows = kRowsOfThread;
  std::int64_t rows, step;
  Divisor packs;
  RowsOfPacks(std::int64_t count, std::int64_t packs_of_row)
      : rows(count), step((count + kRows - 1) / kRows), packs(packs_of_row) {}
  std::int64_t threads() const { return step * packs.value(); }
  /// Calls what(r, place of its pack) for each row r of thread i.
  template <class What>
  LOCKSTEP_HOST_DEVICE void for_rows(std::int64_t i, const What& what) const {
    const std::int64_t first = i / packs;
    LOCKSTEP_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (first + r * step < rows) what(r, i + r * step * packs.value());
    }
  }
};

/// A number for each channel of a pack.
template <int kCount>
struct OfChannels {
  static constexpr int kFloats = device::kPacked<float>;
  float at[kCount];
  LOCKSTEP_HOST_DEVICE OfChannels(const float* from, std::int64_t pack) {
    LOCKSTEP_UNROLL
    for (int c = 0; c < kCount; c += kFloats) {
      const auto some = device::read_pack<kFloats>(from + pack * kCount + c);
      LOCKSTEP_UNROLL
      for (int k = 0; k < kFloats; ++k) at[c + k] = some.at[k];
    }
  }
};

struct Normalization {
  const float *mean, *scale, *shift;  ///< [channels]
  bool relu;                          ///< the epilogue
  LOCKSTEP_HOST_DEVICE float of(float x, float mean_of_it, float scale_of_it, float shift_of_it) const {
    const float normalized = (x - mean_of_it) * scale_of_it + shift_of_it;
    return relu ? Relu::of(normalized) : normalized;
  }
};

template <class T>
struct NormalizeFunctor {
  const T* x;
  Normalization norm;
  T* y;
  Divisor channels;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    const std::int64_t c = i % channels;
    return norm.of(x[i], norm.mean[c], norm.scale[c], norm.shift[c]);
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

/// The same for packs of channels.
template <class T, int kCount = device::kPacked<T>>
struct NormalizePacksFunctor {
  const T* x;
  Normalization norm;
  T* y;
  RowsOfPacks<4> rows;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t pack = i % rows.packs;
    const OfChannels<kCount> mean(norm.mean, pack), scale(norm.scale, pack), shift(norm.shift, pack);
    device::Pack<T, kCount> from[decltype(rows)::kRows];
    rows.for_rows(i, [&](int r, std::int64_t at) { from[r] = device::read_pack<kCount>(x + at * kCount); });
    rows.for_rows(i, [&](int r, std::int64_t at) {
      device::Pack<T, kCount> to;
      LOCKSTEP_UNROLL
      for (int c = 0; c < kCount; ++c) to.at[c] = norm.of(from[r].at[c], mean.at[c], scale.at[c], shift.at[c]);
      device::write_pack(y + at * kCount, to);
    });
  }
};

/// The gradient of the normalised value: dy, or, with the epilogue relu, what passes through it.
template <class T>
struct NormalizedGradient {
  const T* dy;
  const T* y;  ///< null: no relu
  LOCKSTEP_HOST_DEVICE float of(std::int64_t i) const { return of(dy[i], (y == nullptr ? dy : y)[i]); }
  /// Of one element of dy, and of y, which is not read where there is no relu.
  LOCKSTEP_HOST_DEVICE float of(const T& of_dy, const T& of_y) const {
    return y == nullptr ? float{of_dy} : Relu::gradient(of_y, of_dy);
  }
};

/// Factors of dx = dy * of_dy + ((x - mean) * of_x + constant), by channel.
struct GradientFactors {
  float *of_dy, *of_x, *constant;
};

template <class T>
struct NormalizeGradientFunctor {
  const T* x;
  NormalizedGradient<T> gradient;
  const float* mean;
  GradientFactors factors;
  T* dx;
  Divisor channels;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    const std::int64_t c = i % channels;
    return factors.of_dy[c] * gradient.of(i) + (factors.of_x[c] * (x[i] - mean[c]) + factors.constant[c]);
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { dx[i] = value; }
};

/// The same for packs of channels.
template <class T, int kCount = device::kPacked<T>>
struct NormalizeGradientPacksFunctor {
  const T* x;
  NormalizedGradient<T> gradient;
  const float* mean;
  GradientFactors factors;
  T* dx;
  RowsOfPacks<2> rows;  // more take so many registers that too few threads are left
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t pack = i % rows.packs;
    const OfChannels<kCount> center(mean, pack), of_dy(factors.of_dy, pack), of_x(factors.of_x, pack),
        constant(factors.constant, pack);
    constexpr int kRows = decltype(rows)::kRows;
    device::Pack<T, kCount> xs[kRows], dys[kRows], ys[kRows];
    rows.for_rows(i, [&](int r, std::int64_t at) {
      xs[r] = device::read_pack<kCount>(x + at * kCount);
      dys[r] = device::read_pack<kCount>(gradient.dy + at * kCount);
      if (gradient.y != nullptr) ys[r] = device::read_pack<kCount>(gradient.y + at * kCount);
    });
    rows.for_rows(i, [&](int r, std::int64_t at) {
      device::Pack<T, kCount> to;
      LOCKSTEP_UNROLL
      for (int c = 0; c < kCount; ++c) {
        const float dy = gradient.of(dys[r].at[c], ys[r].at[c]);
        to.at[c] = of_dy.at[c] * dy + (of_x.at[c] * (float{xs[r].at[c]} - center.at[c]) + constant.at[c]);
      }
      device::write_pack(dx + at * kCount, to);
    });
  }
};

}  // namespace lockstep::ops
