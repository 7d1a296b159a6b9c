// batch_norm over a Grid. A thread takes a channel of a block of rows and makes its moments in two passes; then a
// thread a channel combines the blocks, in double. Blocks, streams and formulas are those of batch_norm_cpu.cpp and
// channel_groups.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "backend/gpu/grid.hpp"
#include "ops/batch_norm/batch_norm_kernels.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

/// Rows [rows, channels], cut into blocks.
struct ChannelBlocks {
  std::int64_t rows, channels, block;

  [[nodiscard]] LOCKSTEP_HOST_DEVICE std::int64_t count() const { return (rows + block - 1) / block; }
  [[nodiscard]] LOCKSTEP_HOST_DEVICE std::int64_t rows_of(std::int64_t number) const {
    const std::int64_t rest = rows - number * block;
    return rest < block ? rest : block;
  }
};

/// Sum of term(0) ... term(rows - 1): row r goes to stream r mod kStreams, what is left of the rows to stream 0; the
/// streams are combined as a tree.
template <int kStreams, class Term>
LOCKSTEP_HOST_DEVICE float sum_in_streams(std::int64_t rows, const Term& term) {
  float sums[kStreams] = {};
  std::int64_t row = 0;
  for (; row + kStreams <= rows; row += kStreams) {
    for (int s = 0; s < kStreams; ++s) sums[s] += term(row + s);
  }
  for (; row < rows; ++row) sums[0] += term(row);
  for (int half = kStreams / 2; half > 0; half /= 2) {
    for (int s = 0; s < half; ++s) sums[s] += sums[s + half];
  }
  return sums[0];
}

/// The CPU has 64 channels at once in two streams, then 32 in four, and the rest in eight.
template <class Term>
LOCKSTEP_HOST_DEVICE float sum_of_channel(std::int64_t channel, std::int64_t channels, std::int64_t rows,
                                          const Term& term) {
  if (channel < channels / 64 * 64) return sum_in_streams<2>(rows, term);
  if (channel < channels / 32 * 32) return sum_in_streams<4>(rows, term);
  return sum_in_streams<8>(rows, term);
}

/// Of block i / channels and channel i % channels.
template <class T>
struct BlockMomentsBody {
  const T* x;
  float *means, *squares;  ///< [blocks, channels]
  ChannelBlocks blocks;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t channels = blocks.channels, channel = i % channels, number = i / channels;
    const std::int64_t rows = blocks.rows_of(number);
    const T* from = x + number * blocks.block * channels + channel;
    const auto value = [=](std::int64_t row) -> float { return from[row * channels]; };
    const float mean = sum_of_channel(channel, channels, rows, value) * (1.0F / static_cast<float>(rows));
    means[i] = mean;
    squares[i] = sum_of_channel(channel, channels, rows, [=](std::int64_t row) {
      const float deviation = value(row) - mean;
      return deviation * deviation;
    });
  }
};

/// 1 / deviation, as a float.
LOCKSTEP_HOST_DEVICE inline float inverse_deviation(double variance, double epsilon) {
  return static_cast<float>(1 / std::sqrt(variance + epsilon));
}

/// What forward keeps of each channel, and what it multiplies by.
struct MomentsBody {
  const float *means, *squares;  ///< [blocks, channels]
  const float* weight;
  float *mean, *inverse, *scale;                 ///< [channels]
  float *statistics_mean, *statistics_variance;  ///< the variance is unbiased
  ChannelBlocks blocks;
  double epsilon;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t c) const {
    double center = 0, deviations = 0;  // sum of their squares
    std::int64_t done = 0;
    for (std::int64_t number = 0; number < blocks.count(); ++number) {
      const std::int64_t rows = blocks.rows_of(number), at = number * blocks.channels + c;
      const auto total = static_cast<double>(done + rows);
      const double share = static_cast<double>(rows) / total, cross = static_cast<double>(done) * share;
      const double delta = means[at] - center;
      center += delta * share;
      deviations += squares[at] + delta * delta * cross;
      done += rows;
    }
    const auto count = static_cast<double>(done > 1 ? done : 1), degrees = static_cast<double>(done > 2 ? done - 1 : 1);
    mean[c] = static_cast<float>(center);
    inverse[c] = inverse_deviation(deviations / count, epsilon);
    scale[c] = weight[c] * inverse[c];
    statistics_mean[c] = mean[c];
    statistics_variance[c] = static_cast<float>(deviations / degrees);
  }
};

struct TrainingScaleBody {
  const float *inverse, *weight;
  float* scale;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t c) const { scale[c] = weight[c] * inverse[c]; }
};

struct InferenceScaleBody {
  const float *variance, *weight;
  float* scale;
  double epsilon;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t c) const {
    scale[c] = weight[c] * inverse_deviation(variance[c], epsilon);
  }
};

template <class T>
struct NormalizeBody {
  const T* x;
  const float *mean, *scale, *shift;
  T* y;
  std::int64_t channels;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t c = i % channels;
    y[i] = (x[i] - mean[c]) * scale[c] + shift[c];
  }
};

/// Sums over a block of dy and of dy * (x - mean).
template <class T>
struct BlockGradientSumsBody {
  const T *x, *dy;
  const float* mean;
  float *sums, *products;  ///< [blocks, channels]
  ChannelBlocks blocks;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t channels = blocks.channels, channel = i % channels, number = i / channels;
    const std::int64_t rows = blocks.rows_of(number), first = number * blocks.block * channels + channel;
    const T *xs = x + first, *gradients = dy + first;
    const float center = mean[channel];
    sums[i] = sum_of_channel(channel, channels, rows, [=](std::int64_t row) { return gradients[row * channels]; });
    products[i] = sum_of_channel(channel, channels, rows, [=](std::int64_t row) {
      return gradients[row * channels] * (xs[row * channels] - center);
    });
  }
};

/// Factors of dx = dy * of_dy + ((x - mean) * of_x + constant), by channel.
struct GradientFactors {
  float *of_dy, *of_x, *constant;
};

struct ChannelGradientBody {
  const float *sums, *products;  ///< [blocks, channels]
  const float *weight, *inverse;
  float *weight_gradient, *bias_gradient;  ///< null where not wanted
  GradientFactors factors;
  ChannelBlocks blocks;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t c) const {
    double sum = 0, product = 0;
    for (std::int64_t number = 0; number < blocks.count(); ++number) {
      sum += sums[number * blocks.channels + c];
      product += products[number * blocks.channels + c];
    }
    if (weight_gradient != nullptr) weight_gradient[c] = static_cast<float>(product * inverse[c]);
    if (bias_gradient != nullptr) bias_gradient[c] = static_cast<float>(sum);
    const auto count = static_cast<double>(blocks.rows > 1 ? blocks.rows : 1);
    const double inv = inverse[c], scale = weight[c] * inv;
    factors.of_dy[c] = static_cast<float>(scale);
    factors.of_x[c] = static_cast<float>(-scale * inv * inv * product / count);
    factors.constant[c] = static_cast<float>(-scale * sum / count);
  }
};

template <class T>
struct NormalizeGradientBody {
  const T *x, *dy;
  const float* mean;
  GradientFactors factors;
  T* dx;
  std::int64_t channels;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t c = i % channels;
    dx[i] = factors.of_dy[c] * dy[i] + (factors.of_x[c] * (x[i] - mean[c]) + factors.constant[c]);
  }
};

template <class Grid, class T>
class BatchNormGrid final : public Kernel {
 public:
  explicit BatchNormGrid(const KernelRequest& request)
      : training_(request.mode == Mode::training), epsilon_(request.attributes->number("epsilon")) {
    const std::int64_t channels = request.inputs[0].shape.back();
    blocks_ = {request.inputs[0].elements() / channels, channels, rows_per_block(channels)};
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(2 * sums() + 3 * blocks_.channels) * sizeof(float);
  }

  void forward(const ForwardCall& call) override {
    const auto [first, second, scale, b, c] = scratch(call.workspace);
    const auto *weight = parameter(call, 0), *mean = static_cast<const float*>(call.states[0]);
    if (training_) {
      auto *saved_mean = static_cast<float*>(call.saved[0]), *inverse = static_cast<float*>(call.saved[1]);
      Grid::each(call.queue, sums(), BlockMomentsBody<T>{input<T>(call), first, second, blocks_});
      Grid::each(call.queue, blocks_.channels,
                 MomentsBody{first, second, weight, saved_mean, inverse, scale, call.statistics[0], call.statistics[1],
                             blocks_, epsilon_});
      mean = saved_mean;
    } else {
      const auto* variance = static_cast<const float*>(call.states[1]);
      Grid::each(call.queue, blocks_.channels, InferenceScaleBody{variance, weight, scale, epsilon_});
    }
    normalize(call, mean, scale);
  }

  [[nodiscard]] bool remakes() const override { return true; }
  void remake(const ForwardCall& call) override {
    float* const scale = scratch(call.workspace).a;
    const auto *mean = static_cast<const float*>(call.saved[0]), *inverse = static_cast<const float*>(call.saved[1]);
    Grid::each(call.queue, blocks_.channels, TrainingScaleBody{inverse, parameter(call, 0), scale});
    normalize(call, mean, scale);
  }

  void backward(const BackwardCall& call) override {
    const auto [first, second, of_dy, of_x, constant] = scratch(call.workspace);
    const auto *mean = static_cast<const float*>(call.saved[0]), *inverse = static_cast<const float*>(call.saved[1]);
    const GradientFactors factors{of_dy, of_x, constant};
    const T *x = input<T>(call), *dy = output_gradient<T>(call);
    Grid::each(call.queue, sums(), BlockGradientSumsBody<T>{x, dy, mean, first, second, blocks_});
    Grid::each(call.queue, blocks_.channels,
               ChannelGradientBody{first, second, parameter(call, 0), inverse, call.parameter_gradients[0],
                                   call.parameter_gradients[1], factors, blocks_});
    if (T* dx = input_gradient<T>(call); dx != nullptr) {
      Grid::each(call.queue, elements(), NormalizeGradientBody<T>{x, dy, mean, factors, dx, blocks_.channels});
    }
  }

 private:
  /// Two sums of each block and channel, three values of each channel.
  struct Scratch {
    float *first, *second, *a, *b, *c;
  };
  [[nodiscard]] Scratch scratch(void* workspace) const {
    auto* first = static_cast<float*>(workspace);
    float* a = first + 2 * sums();
    return {first, first + sums(), a, a + blocks_.channels, a + 2 * blocks_.channels};
  }
  void normalize(const ForwardCall& call, const float* mean, const float* scale) const {
    Grid::each(call.queue, elements(),
               NormalizeBody<T>{input<T>(call), mean, scale, parameter(call, 1), output<T>(call), blocks_.channels});
  }
  [[nodiscard]] std::int64_t sums() const { return blocks_.count() * blocks_.channels; }
  [[nodiscard]] std::int64_t elements() const { return blocks_.rows * blocks_.channels; }
  template <class Call>
  static const float* parameter(const Call& call, std::size_t i) {
    return static_cast<const float*>(call.parameters[i]);
  }

  bool training_;
  double epsilon_;
  ChannelBlocks blocks_{};
};

template <class Grid>
std::unique_ptr<Kernel> make_batch_norm_grid(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<BatchNormGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
