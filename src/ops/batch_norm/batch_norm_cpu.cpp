// Moments are computed block by block, each in two passes while it is in the first-level cache, and combined in double
// (channel_sums.hpp): as accurate as two passes over memory, at the cost of one.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "ops/batch_norm/batch_norm_kernels.hpp"
#include "ops/batch_norm/channel_sums.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

/// The workspace, by channel: the total over all rows and the levels of that sum (of Moments or GradientTotals), two
/// rows of doubles, and three of floats.
struct Scratch {
  Scratch(void* workspace, std::int64_t blocks, std::int64_t channels)
      : totals(workspace),
        levels(static_cast<std::byte*>(workspace) + totals_bytes(channels)),
        first(reinterpret_cast<double*>(static_cast<std::byte*>(levels) + levels_bytes(blocks, channels))),
        second(first + channels),
        a(reinterpret_cast<float*>(second + channels)),
        b(a + channels),
        c(b + channels) {}
  static std::size_t bytes(std::int64_t blocks, std::int64_t channels) {
    return totals_bytes(channels) + levels_bytes(blocks, channels) +
           channels * (2 * sizeof(double) + 3 * sizeof(float));
  }
  void *totals, *levels;
  double *first, *second;
  float *a, *b, *c;

 private:
  static std::size_t totals_bytes(std::int64_t channels) { return channels * sizeof(Moments); }
  static std::size_t levels_bytes(std::int64_t blocks, std::int64_t channels) {
    return device::row_sums_bytes<Moments>(blocks, channels);
  }
};

class BatchNormCpu final : public Kernel {
 public:
  explicit BatchNormCpu(const KernelRequest& request)
      : training_(request.mode == Mode::training),
        channels_(request.inputs[0].shape.back()),
        blocks_{request.inputs[0].elements() / channels_, rows_per_block(channels_)},
        epsilon_(request.attributes->number("epsilon")),
        relu_(request.epilogue == "relu") {}

  std::size_t workspace_bytes() const override { return Scratch::bytes(blocks_.count(), channels_); }

  void forward(const ForwardCall& call) override {
    const Scratch scratch = scratch_in(call.workspace);
    if (training_) {
      finish_moments(moments(input(call), scratch), static_cast<float*>(call.saved[0]),
                     static_cast<float*>(call.saved[1]), call);
      return recompute(call);
    }
    const auto *mean = static_cast<const float*>(call.states[0]), *variance = static_cast<const float*>(call.states[1]);
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    for (std::int64_t c = 0; c < channels_; ++c) scratch.a[c] = weight[c] * inverse_stddev(variance[c]);
    normalize_by(call, mean, scratch.a);
  }

  bool can_recompute() const override { return true; }
  void recompute(const ForwardCall& call) override {
    const Scratch scratch = scratch_in(call.workspace);
    const auto *mean = static_cast<const float*>(call.saved[0]), *inverse = static_cast<const float*>(call.saved[1]);
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    for (std::int64_t c = 0; c < channels_; ++c) scratch.a[c] = weight[c] * inverse[c];
    normalize_by(call, mean, scratch.a);
  }

  void backward(const BackwardCall& call) override {
    const Scratch scratch = scratch_in(call.workspace);
    const float* mean = static_cast<const float*>(call.saved[0]);
    const float* inverse = static_cast<const float*>(call.saved[1]);
    const GradientTotals* const totals = gradient_totals(call, mean, scratch);
    float *weight_gradient = call.parameter_gradients[0], *bias_gradient = call.parameter_gradients[1];
    for (std::int64_t c = 0; c < channels_; ++c) {
      if (weight_gradient != nullptr) weight_gradient[c] = totals[c].product * inverse[c];
      if (bias_gradient != nullptr) bias_gradient[c] = totals[c].gradient;
    }
    if (input_gradient(call) == nullptr) return;
    const float* weight = static_cast<const float*>(call.parameters[0]);
    const double count = std::max<std::int64_t>(blocks_.rows, 1);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double inv = inverse[c], scale = weight[c] * inv;
      scratch.a[c] = scale;
      scratch.b[c] = -scale * inv * inv * totals[c].product / count;
      scratch.c[c] = -scale * totals[c].gradient / count;
    }
    normalize_gradient(input(call), gradient_from(call, 0), mean, scratch.a, scratch.b, scratch.c, input_gradient(call),
                       blocks_.rows, channels_);
  }

 private:
  OutputGradient gradient_from(const BackwardCall& call, std::int64_t at) const {
    return {output_gradient(call) + at, relu_ ? static_cast<const float*>(call.outputs[0]) + at : nullptr};
  }

  void normalize_by(const ForwardCall& call, const float* mean, const float* scale) const {
    normalize(input(call), mean, scale, static_cast<const float*>(call.parameters[1]), output(call), blocks_.rows,
              channels_, relu_);
  }

  float inverse_stddev(double variance) const { return 1 / std::sqrt(variance + epsilon_); }

  Scratch scratch_in(void* workspace) const { return {workspace, blocks_.count(), channels_}; }

  /// Adds all blocks in the order of device/row_blocks.hpp: add(block) adds to scratch.first and second, which start at
  /// 0 for each block of blocks; taken(channel) then returns their result.
  template <class T, class Add, class Taken>
  const T* sum_of_blocks(const Scratch& scratch, const Add& add, const Taken& taken) const {
    auto* const totals = static_cast<T*>(scratch.totals);
    const auto first = [&](const device::RowBlocks& level, T* to) {
      for (std::int64_t i = 0; i < level.count(); ++i, to += channels_) {
        std::fill_n(scratch.first, 2 * channels_, 0.0);
        for (std::int64_t number = level.begin(i); number < level.end(i); ++number) add(number, level.begin(i));
        for (std::int64_t c = 0; c < channels_; ++c) to[c] = taken(c);
      }
    };
    device::for_levels(
        blocks_.count(), channels_, totals, static_cast<T*>(scratch.levels), first,
        [&](const T* from, const device::RowBlocks& level, T* to) { device::sum_level(from, level, channels_, to); });
    return totals;
  }

  const Moments* moments(const float* x, const Scratch& scratch) const {
    double total = 0;
    const auto add = [&](std::int64_t number, std::int64_t first) {
      const std::int64_t rows = blocks_.rows_of(number), done = (number - first) * blocks_.block;
      block_moments(x + number * blocks_.block * channels_, rows, channels_, scratch.a, scratch.b);
      total = done + rows;
      const double share = rows / total, cross = done * share;
      for (std::int64_t c = 0; c < channels_; ++c) {
        const double delta = scratch.a[c] - scratch.first[c];
        scratch.first[c] += delta * share;
        scratch.second[c] += scratch.b[c] + delta * delta * cross;
      }
    };
    return sum_of_blocks<Moments>(scratch, add, [&](std::int64_t c) {
      return Moments{total, scratch.first[c], scratch.second[c]};
    });
  }

  void finish_moments(const Moments* moments, float* mean, float* inverse, const ForwardCall& call) const {
    const double count = std::max<std::int64_t>(blocks_.rows, 1);
    const double degrees = std::max<std::int64_t>(blocks_.rows - 1, 1);
    for (std::int64_t c = 0; c < channels_; ++c) {
      mean[c] = moments[c].mean;
      inverse[c] = inverse_stddev(moments[c].squares / count);
      call.statistics[0][c] = mean[c];
      call.statistics[1][c] = moments[c].squares / degrees;
    }
  }

  const GradientTotals* gradient_totals(const BackwardCall& call, const float* mean, const Scratch& scratch) const {
    const auto add = [&](std::int64_t number, std::int64_t /*first*/) {
      const std::int64_t rows = blocks_.rows_of(number), at = number * blocks_.block * channels_;
      block_gradient_sums(input(call) + at, gradient_from(call, at), mean, rows, channels_, scratch.a, scratch.b);
      for (std::int64_t c = 0; c < channels_; ++c) {
        scratch.first[c] += scratch.a[c];
        scratch.second[c] += scratch.b[c];
      }
    };
    return sum_of_blocks<GradientTotals>(scratch, add, [&](std::int64_t c) {
      return GradientTotals{scratch.first[c], scratch.second[c]};
    });
  }

  bool training_;
  std::int64_t channels_;
  CacheBlocks blocks_;
  double epsilon_;
  bool relu_;
};

}  // namespace

std::unique_ptr<Kernel> make_batch_norm_cpu(const KernelRequest& request) {
  return std::make_unique<BatchNormCpu>(request);
}

}  // namespace lockstep::ops
