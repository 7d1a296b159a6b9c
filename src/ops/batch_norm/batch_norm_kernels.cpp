#include "ops/batch_norm/batch_norm_kernels.hpp"

#include <algorithm>

#include "core/vectorize.hpp"
#include "ops/batch_norm/channel_groups.hpp"

namespace lockstep::ops {

namespace {

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
