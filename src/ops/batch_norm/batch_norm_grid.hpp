// batch_norm on a Grid. One thread computes the moments of one channel of a block of rows, in two passes; the blocks
// are added in double, as rows are. Blocks, streams and formulas are those of batch_norm_cpu.cpp, channel_sums.hpp and
// channel_groups.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "core/divisor.hpp"
#include "device/gpu/grid.hpp"
#include "ops/batch_norm/batch_norm_kernels.hpp"
#include "ops/batch_norm/channel_sums.hpp"
#include "ops/batch_norm/normalize_kernels.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

/// Sum of term(0) ... term(rows - 1): row r goes to stream r mod kStreams, remaining rows to stream 0; the streams are
/// combined as a tree. Sum: a float, or several that are summed side by side.
template <class Sum, int kStreams, class Term>
LOCKSTEP_HOST_DEVICE Sum sum_in_streams(std::int64_t rows, const Term& term) {
  Sum sums[kStreams] = {};
  std::int64_t row = 0;
  for (; row + kStreams <= rows; row += kStreams) {
    for (int s = 0; s < kStreams; ++s) sums[s] += term(row + s);
  }
  LOCKSTEP_DO_NOT_UNROLL
  for (; row < rows; ++row) sums[0] += term(row);
  for (int half = kStreams / 2; half > 0; half /= 2) {
    for (int s = 0; s < half; ++s) sums[s] += sums[s + half];
  }
  return sums[0];
}

/// The CPU sums 64 channels at a time in two streams, then 32 in four, and the rest in eight.
template <class Sum, class Term>
LOCKSTEP_HOST_DEVICE Sum sum_of_channel(std::int64_t channel, std::int64_t channels, std::int64_t rows,
                                        const Term& term) {
  if (channel < channels / 64 * 64) return sum_in_streams<Sum, 2>(rows, term);
  if (channel < channels / 32 * 32) return sum_in_streams<Sum, 4>(rows, term);
  return sum_in_streams<Sum, 8>(rows, term);
}

/// For block i / channels and channel i % channels.
template <class T>
struct BlockMomentsFunctor {
  const T* x;
  float *means, *squares;  ///< [blocks, channels]
  CacheBlocks blocks;
  Divisor channels;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t channel = i % channels, number = i / channels, step = channels.value();
    const std::int64_t rows = blocks.rows_of(number);
    const T* from = x + number * blocks.block * step + channel;
    const auto value = [=](std::int64_t row) -> float { return from[row * step]; };
    const float mean = sum_of_channel<float>(channel, step, rows, value) * (1.0F / rows);
    means[i] = mean;
    squares[i] = sum_of_channel<float>(channel, step, rows, [=](std::int64_t row) {
      const float deviation = value(row) - mean;
      return deviation * deviation;
    });
  }
};

/// 1 / standard deviation, as a float.
LOCKSTEP_HOST_DEVICE inline float inverse_stddev(double variance, double epsilon) {
  return 1 / std::sqrt(variance + epsilon);
}

/// The results of the functors above, as rows to be added.
struct BlockMoments {
  static constexpr int kRowsAtOnce = 16;
  const float *means, *squares;  ///< [blocks, channels]
  CacheBlocks blocks;
  std::int64_t channels;
  LOCKSTEP_HOST_DEVICE Moments of(std::int64_t number, std::int64_t channel) const {
    const std::int64_t at = number * channels + channel;
    return {static_cast<double>(blocks.rows_of(number)), means[at], squares[at]};
  }
};

/// What forward saves for each channel, and its scale.
struct MomentsFunctor {
  const Moments* moments;  ///< [channels]
  const float* weight;
  float *mean, *inverse, *scale;                 ///< [channels]
  float *statistics_mean, *statistics_variance;  ///< the variance is unbiased
  std::int64_t rows;
  double epsilon;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t c) const {
    const double count = rows > 1 ? rows : 1, degrees = rows > 2 ? rows - 1 : 1;
    mean[c] = moments[c].mean;
    inverse[c] = inverse_stddev(moments[c].squares / count, epsilon);
    scale[c] = weight[c] * inverse[c];
    statistics_mean[c] = mean[c];
    statistics_variance[c] = moments[c].squares / degrees;
  }
};

struct TrainingScaleFunctor {
  const float *inverse, *weight;
  float* scale;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t c) const { scale[c] = weight[c] * inverse[c]; }
};

struct InferenceScaleFunctor {
  const float *variance, *weight;
  float* scale;
  double epsilon;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t c) const {
    scale[c] = weight[c] * inverse_stddev(variance[c], epsilon);
  }
};

struct GradientSums {
  float gradient, product;
  LOCKSTEP_HOST_DEVICE GradientSums& operator+=(const GradientSums& other) {
    gradient += other.gradient;
    product += other.product;
    return *this;
  }
};

/// Sums over a block of dy and of dy * (x - mean), in one pass.
template <class T>
struct BlockGradientSumsFunctor {
  const T* x;
  NormalizedGradient<T> gradient;
  const float* mean;
  float *sums, *products;  ///< [blocks, channels]
  CacheBlocks blocks;
  Divisor channels;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t channel = i % channels, number = i / channels, step = channels.value();
    const std::int64_t rows = blocks.rows_of(number), first = number * blocks.block * step + channel;
    const NormalizedGradient<T> from = gradient;
    const T* xs = x;
    const float center = mean[channel];
    const auto found = sum_of_channel<GradientSums>(channel, step, rows, [=](std::int64_t row) -> GradientSums {
      const std::int64_t at = first + row * step;
      const float dy = from.of(at);
      return {dy, dy * (xs[at] - center)};
    });
    sums[i] = found.gradient;
    products[i] = found.product;
  }
};

/// These sums, as rows to be added.
struct BlockGradients {
  static constexpr int kRowsAtOnce = 16;
  const float *sums, *products;  ///< [blocks, channels]
  std::int64_t channels;
  LOCKSTEP_HOST_DEVICE GradientTotals of(std::int64_t number, std::int64_t channel) const {
    const std::int64_t at = number * channels + channel;
    return {sums[at], products[at]};
  }
};

struct ChannelGradientFunctor {
  const GradientTotals* totals;  ///< [channels]
  const float *weight, *inverse;
  float *weight_gradient, *bias_gradient;  ///< null if not wanted
  GradientFactors factors;
  std::int64_t rows;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t c) const {
    const auto [sum, product] = totals[c];
    if (weight_gradient != nullptr) weight_gradient[c] = product * inverse[c];
    if (bias_gradient != nullptr) bias_gradient[c] = sum;
    const double count = rows > 1 ? rows : 1;
    const double inv = inverse[c], scale = weight[c] * inv;
    factors.of_dy[c] = scale;
    factors.of_x[c] = -scale * inv * inv * product / count;
    factors.constant[c] = -scale * sum / count;
  }
};

template <class Grid, class T>
class BatchNormGrid final : public Kernel {
 public:
  explicit BatchNormGrid(const KernelRequest& request)
      : training_(request.mode == Mode::training),
        relu_(request.epilogue == "relu"),
        epsilon_(request.attributes->number("epsilon")),
        channels_(request.inputs[0].shape.back()),
        blocks_{request.inputs[0].elements() / channels_, rows_per_block(channels_)} {}

  std::size_t workspace_bytes() const override {
    return totals_bytes() + static_cast<std::size_t>(2 * sums() + 3 * channels_) * sizeof(float);
  }

  void forward(const ForwardCall& call) override {
    const auto [first, second, scale, b, c] = scratch(call.workspace);
    const auto *weight = parameter(call, 0), *mean = static_cast<const float*>(call.states[0]);
    if (training_) {
      auto *saved_mean = static_cast<float*>(call.saved[0]), *inverse = static_cast<float*>(call.saved[1]);
      Grid::each(stream_of(call), sums(),
                 BlockMomentsFunctor<T>{input<T>(call), first, second, blocks_, Divisor(channels_)});
      const auto* moments = add<Moments>(call, BlockMoments{first, second, blocks_, channels_});
      Grid::each(stream_of(call), channels_,
                 MomentsFunctor{moments, weight, saved_mean, inverse, scale, call.statistics[0], call.statistics[1],
                                blocks_.rows, epsilon_});
      mean = saved_mean;
    } else {
      const auto* variance = static_cast<const float*>(call.states[1]);
      Grid::each(stream_of(call), channels_, InferenceScaleFunctor{variance, weight, scale, epsilon_});
    }
    normalize(call, mean, scale);
  }

  bool can_recompute() const override { return true; }
  void recompute(const ForwardCall& call) override {
    float* const scale = scratch(call.workspace).a;
    const auto *mean = static_cast<const float*>(call.saved[0]), *inverse = static_cast<const float*>(call.saved[1]);
    Grid::each(stream_of(call), channels_, TrainingScaleFunctor{inverse, parameter(call, 0), scale});
    normalize(call, mean, scale);
  }

  void backward(const BackwardCall& call) override {
    const auto [first, second, of_dy, of_x, constant] = scratch(call.workspace);
    const auto *mean = static_cast<const float*>(call.saved[0]), *inverse = static_cast<const float*>(call.saved[1]);
    const GradientFactors factors{of_dy, of_x, constant};
    const T* x = input<T>(call);
    const NormalizedGradient<T> gradient{output_gradient<T>(call),
                                         relu_ ? static_cast<const T*>(call.outputs[0]) : nullptr};
    Grid::each(stream_of(call), sums(),
               BlockGradientSumsFunctor<T>{x, gradient, mean, first, second, blocks_, Divisor(channels_)});
    const auto* totals = add<GradientTotals>(call, BlockGradients{first, second, channels_});
    Grid::each(stream_of(call), channels_,
               ChannelGradientFunctor{totals, parameter(call, 0), inverse, call.parameter_gradients[0],
                                      call.parameter_gradients[1], factors, blocks_.rows});
    T* const dx = input_gradient<T>(call);
    if (dx == nullptr) return;
    if (in_packs()) {
      const auto packs = rows_of_packs<2>();
      Grid::each(stream_of(call), packs.threads(),
                 NormalizeGradientPacksFunctor<T>{x, gradient, mean, factors, dx, packs});
    } else {
      Grid::each(stream_of(call), elements(),
                 NormalizeGradientFunctor<T>{x, gradient, mean, factors, dx, Divisor(channels_)});
    }
  }

 private:
  /// The workspace: totals over all rows, by channel, and the levels of that sum; then the floats below.
  std::size_t totals_bytes() const {
    return channels_ * sizeof(Moments) + device::row_sums_bytes<Moments>(blocks_.count(), channels_);
  }
  template <class Total, class Call, class Terms>
  const Total* add(const Call& call, const Terms& terms) const {
    auto* const totals = static_cast<Total*>(call.workspace);
    launch_row_sums<Grid>(stream_of(call), terms, blocks_.count(), channels_, totals, totals + channels_);
    return totals;
  }
  /// Two sums per block and channel, three values per channel.
  struct Scratch {
    float *first, *second, *a, *b, *c;
  };
  Scratch scratch(void* workspace) const {
    auto* first = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + totals_bytes());
    float* a = first + 2 * sums();
    return {first, first + sums(), a, a + channels_, a + 2 * channels_};
  }
  void normalize(const ForwardCall& call, const float* mean, const float* scale) const {
    const Normalization norm{mean, scale, parameter(call, 1), relu_};
    if (in_packs()) {
      const auto packs = rows_of_packs<4>();
      Grid::each(stream_of(call), packs.threads(),
                 NormalizePacksFunctor<T>{input<T>(call), norm, output<T>(call), packs});
    } else {
      Grid::each(stream_of(call), elements(),
                 NormalizeFunctor<T>{input<T>(call), norm, output<T>(call), Divisor(channels_)});
    }
  }
  bool in_packs() const { return channels_ % device::kPacked<T> == 0; }
  template <int kRows>
  RowsOfPacks<kRows> rows_of_packs() const {
    return {blocks_.rows, channels_ / device::kPacked<T>};
  }
  std::int64_t sums() const { return blocks_.count() * channels_; }
  std::int64_t elements() const { return blocks_.rows * channels_; }
  template <class Call>
  static const float* parameter(const Call& call, std::size_t i) {
    return static_cast<const float*>(call.parameters[i]);
  }

  bool training_, relu_;
  double epsilon_;
  std::int64_t channels_;
  CacheBlocks blocks_;
};

template <class Grid>
std::unique_ptr<Kernel> make_batch_norm_grid(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<BatchNormGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
