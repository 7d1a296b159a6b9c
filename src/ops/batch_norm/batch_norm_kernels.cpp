#include "ops/batch_norm/batch_norm_kernels.hpp"

#include <algorithm>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"

namespace lockstep::ops {

namespace {

// Loops over rows of channels [rows, channels] with the channels' constants and sums in registers; for functions marked
// LOCKSTEP_VECTORIZED.
//
// Channels are cut into groups of 64, 32, 16 and a remainder. The association of a sum over rows depends only on the
// numbers of channels and rows: row r goes to stream r mod streams, and the streams are combined as a tree.

/// Member functions and functors of loops must be inlined into each instruction set's version.
#define LOCKSTEP_MEMBER inline __attribute__((always_inline))

using device::kLanes;
using device::Lanes;

/// kWidth registers of 16 channels each; the last one has fewer unless kWhole.
template <int kWidth, bool kWhole>
struct ChannelGroup {
  static constexpr int kVectors = kWidth;
  std::int64_t first = 0;       ///< its first channel
  std::int64_t count = kLanes;  ///< channels in the last register

  LOCKSTEP_MEMBER void load(Lanes& to, const float* row, int w) const {
    if constexpr (kWhole) {
      device::load(to, row + first + w * kLanes);
    } else {
      device::load_part(to, row + first + w * kLanes, count, 0);
    }
  }
  LOCKSTEP_MEMBER void store(float* row, int w, const Lanes& from) const {
    if constexpr (kWhole) {
      device::store(row + first + w * kLanes, from);
    } else {
      std::memcpy(row + first + w * kLanes, &from, count * sizeof(float));
    }
  }
};

/// Calls functor(group) for each group of channels.
template <class Functor>
LOCKSTEP_INLINE void for_channel_groups(std::int64_t channels, const Functor& functor) {
  std::int64_t c = 0;
  for (; c + 4 * kLanes <= channels; c += 4 * kLanes) functor(ChannelGroup<4, true>{c});
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) functor(ChannelGroup<2, true>{c});
  for (; c + kLanes <= channels; c += kLanes) functor(ChannelGroup<1, true>{c});
  if (c < channels) functor(ChannelGroup<1, false>{c, channels - c});
}

/// total[t][w] = sum over rows of values[t], which term(row, w, values[kTerms]) sets.
template <int kTerms, int kWidth, class Term>
LOCKSTEP_INLINE void sum_over_rows(std::int64_t rows, const Term& term, Lanes (&total)[kTerms][kWidth]) {
  constexpr int kStreams = 8 / kWidth;
  Lanes sums[kStreams][kTerms][kWidth] = {};
  Lanes values[kTerms];
  std::int64_t row = 0;
  for (; row + kStreams <= rows; row += kStreams) {
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; ++s) {
#pragma GCC unroll 4
      for (int w = 0; w < kWidth; ++w) {
        term(row + s, w, values);
#pragma GCC unroll 2
        for (int t = 0; t < kTerms; ++t) sums[s][t][w] += values[t];
      }
    }
  }
  for (; row < rows; ++row) {
    for (int w = 0; w < kWidth; ++w) {
      term(row, w, values);
      for (int t = 0; t < kTerms; ++t) sums[0][t][w] += values[t];
    }
  }
#pragma GCC unroll 4
  for (int half = kStreams / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int s = 0; s < half; ++s) {
#pragma GCC unroll 2
      for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 4
        for (int w = 0; w < kWidth; ++w) sums[s][t][w] += sums[s + half][t][w];
      }
    }
  }
  for (int t = 0; t < kTerms; ++t) {
    for (int w = 0; w < kWidth; ++w) total[t][w] = sums[0][t][w];
  }
}

constexpr std::int64_t kBlockFloats = 8192;  // 32 KiB

struct BlockMomentsOfGroup {
  const float* x;
  std::int64_t rows, channels;
  float *mean, *squares;

  template <class Group>
  LOCKSTEP_MEMBER void operator()(const Group& group) const {
    Lanes sum[1][Group::kVectors], square[1][Group::kVectors];
    const auto value = [&](std::int64_t row, int w, Lanes(&out)[1]) __attribute__((always_inline)) {
      group.load(out[0], x + row * channels, w);
    };
    sum_over_rows(rows, value, sum);
    const float inverse = 1.0F / rows;
    for (int w = 0; w < Group::kVectors; ++w) sum[0][w] *= inverse;
    const auto deviation = [&](std::int64_t row, int w, Lanes(&out)[1]) __attribute__((always_inline)) {
      group.load(out[0], x + row * channels, w);
      out[0] -= sum[0][w];
      out[0] *= out[0];
    };
    sum_over_rows(rows, deviation, square);
    for (int w = 0; w < Group::kVectors; ++w) {
      group.store(mean, w, sum[0][w]);
      group.store(squares, w, square[0][w]);
    }
  }
};

template <bool kRelu>
struct Normalize {
  const float *x, *mean, *scale, *shift;
  float* y;
  std::int64_t rows, channels;

  template <class Group>
  LOCKSTEP_MEMBER void operator()(const Group& group) const {
    Lanes m[Group::kVectors], a[Group::kVectors], b[Group::kVectors], value;
    for (int w = 0; w < Group::kVectors; ++w) {
      group.load(m[w], mean, w);
      group.load(a[w], scale, w);
      group.load(b[w], shift, w);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 4
      for (int w = 0; w < Group::kVectors; ++w) {
        group.load(value, x + row * channels, w);
        value = (value - m[w]) * a[w] + b[w];
        if constexpr (kRelu) value = device::keep(~device::is_zero_or_less(value), value);
        group.store(y + row * channels, w, value);
      }
    }
  }
};

/// dy, or 0 where relu made y 0.
template <bool kRelu, class Group>
LOCKSTEP_INLINE void load_gradient(const Group& group, const float* dy, const float* y, std::int64_t at, int w,
                                   Lanes& gradient) {
  group.load(gradient, dy + at, w);
  if constexpr (kRelu) {
    Lanes output;
    group.load(output, y + at, w);
    gradient = device::keep(~device::is_zero_or_less(output), gradient);
  }
}

template <bool kRelu>
struct GradientSums {
  const float *x, *dy, *y, *mean;
  std::int64_t rows, channels;
  float *sum, *product;

  template <class Group>
  LOCKSTEP_MEMBER void operator()(const Group& group) const {
    Lanes m[Group::kVectors], total[2][Group::kVectors];
    for (int w = 0; w < Group::kVectors; ++w) group.load(m[w], mean, w);
    const auto terms = [&](std::int64_t row, int w, Lanes(&out)[2]) __attribute__((always_inline)) {
      load_gradient<kRelu>(group, dy, y, row * channels, w, out[0]);
      group.load(out[1], x + row * channels, w);
      out[1] = out[0] * (out[1] - m[w]);
    };
    sum_over_rows(rows, terms, total);
    for (int w = 0; w < Group::kVectors; ++w) {
      group.store(sum, w, total[0][w]);
      group.store(product, w, total[1][w]);
    }
  }
};

template <bool kRelu>
struct NormalizeGradient {
  const float *x, *dy, *y, *mean, *a, *b, *c;
  float* dx;
  std::int64_t rows, channels;

  template <class Group>
  LOCKSTEP_MEMBER void operator()(const Group& group) const {
    Lanes m[Group::kVectors], of_dy[Group::kVectors], of_x[Group::kVectors], constant[Group::kVectors], value, gradient;
    for (int w = 0; w < Group::kVectors; ++w) {
      group.load(m[w], mean, w);
      group.load(of_dy[w], a, w);
      group.load(of_x[w], b, w);
      group.load(constant[w], c, w);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
#pragma GCC unroll 4
      for (int w = 0; w < Group::kVectors; ++w) {
        load_gradient<kRelu>(group, dy, y, row * channels, w, gradient);
        group.load(value, x + row * channels, w);
        value = of_dy[w] * gradient + (of_x[w] * (value - m[w]) + constant[w]);
        group.store(dx + row * channels, w, value);
      }
    }
  }
};

}  // namespace

std::int64_t rows_per_block(std::int64_t channels) {
  return std::max<std::int64_t>(8, kBlockFloats / channels / 8 * 8);
}

LOCKSTEP_VECTORIZED void block_moments(const float* x, std::int64_t rows, std::int64_t channels, float* mean,
                                       float* squares) {
  for_channel_groups(channels, BlockMomentsOfGroup{x, rows, channels, mean, squares});
}

LOCKSTEP_VECTORIZED void normalize(const float* x, const float* mean, const float* scale, const float* shift, float* y,
                                   std::int64_t rows, std::int64_t channels, bool relu) {
  if (relu) {
    for_channel_groups(channels, Normalize<true>{x, mean, scale, shift, y, rows, channels});
  } else {
    for_channel_groups(channels, Normalize<false>{x, mean, scale, shift, y, rows, channels});
  }
}

LOCKSTEP_VECTORIZED void block_gradient_sums(const float* x, OutputGradient gradient, const float* mean,
                                             std::int64_t rows, std::int64_t channels, float* sum, float* product) {
  const auto [dy, y] = gradient;
  if (y != nullptr) {
    for_channel_groups(channels, GradientSums<true>{x, dy, y, mean, rows, channels, sum, product});
  } else {
    for_channel_groups(channels, GradientSums<false>{x, dy, y, mean, rows, channels, sum, product});
  }
}

LOCKSTEP_VECTORIZED void normalize_gradient(const float* x, OutputGradient gradient, const float* mean, const float* a,
                                            const float* b, const float* c, float* dx, std::int64_t rows,
                                            std::int64_t channels) {
  const auto [dy, y] = gradient;
  if (y != nullptr) {
    for_channel_groups(channels, NormalizeGradient<true>{x, dy, y, mean, a, b, c, dx, rows, channels});
  } else {
    for_channel_groups(channels, NormalizeGradient<false>{x, dy, y, mean, a, b, c, dx, rows, channels});
  }
}

}  // namespace lockstep::ops
