// With m = max_k x_k, l = log sum_k e^(x_k - m) and w = sum_k q_k: loss = w * l - sum_k q_k (x_k - m), gradient w *
// e^((x - m) - l) - q. Logits enter only as differences from m, so the loss is as accurate for logits around 1e4 as for
// those around 1; log sum_k e^x_k itself would be rounded to the spacing of floats at 1e4.
#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/softmax.hpp"
#include "ops/cross_entropy/class_blocks.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

namespace {

struct RowSums {
  float maximum, exponentials, total;  ///< total: sum of x - maximum
};

/// By block (class_blocks.hpp).
struct BlockSums {
  float *maxima, *exponentials;
};

LOCKSTEP_VECTORIZED RowSums row_sums(const float* x, const ClassBlocks& blocks, const BlockSums& of, bool with_total) {
  const std::int64_t n = blocks.classes;
  RowSums sums{};
  if (blocks.several()) {
    const std::int64_t count = blocks.count();
    for (std::int64_t b = 0; b < count; ++b) {
      const float* from = x + b * kClassBlock;
      of.maxima[b] = device::maximum(from, blocks.size(b));
      of.exponentials[b] = device::sum_of_exponentials(from, blocks.size(b), block_reference(of.maxima[b]));
    }
    sums.maximum = device::maximum(of.maxima, count);
    sums.exponentials = device::sum_of_scaled_exponentials(of.exponentials, of.maxima, count, sums.maximum);
  } else {
    sums.maximum = device::maximum(x, n);
    sums.exponentials = device::sum_of_exponentials(x, n, sums.maximum);
  }
  if (with_total) sums.total = device::shifted_sum(x, n, sums.maximum);
  return sums;
}

LOCKSTEP_VECTORIZED float soft_product(const float* t, const float* x, std::int64_t n, float maximum) {
  return device::shifted_dot(t, x, n, maximum);
}

/// What backward needs from a row's log-softmax: log_softmax(x)_k = (x_k - maximum) - log_sum.
struct RowNormalizer {
  float maximum, log_sum;
};

/// dx = weight * softmax(x) - spread
LOCKSTEP_VECTORIZED void softmax_gradient(const float* x, float* dx, std::int64_t n, RowNormalizer row, float weight,
                                          float spread) {
  device::map(x, dx, n, [=](const device::Lanes& v) LOCKSTEP_INLINE_LAMBDA -> device::Lanes {
    return device::vector_exp((v - row.maximum) - row.log_sum) * weight - spread;
  });
}

LOCKSTEP_VECTORIZED float sum_of(const float* values, std::int64_t n) {
  return device::sum(values, n);
}

LOCKSTEP_VECTORIZED void subtract_scaled(const float* t, float scale, float* dx, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] -= scale * t[i];
}

class CrossEntropyCpu final : public Kernel {
 public:
  CrossEntropyCpu(const ClassRows& rows, float smoothing)
      : rows_(rows), blocks_{rows.classes}, keep_(1 - smoothing), spread_(smoothing / rows.classes) {}

  /// Holds the losses of a sample's rows, and a row's sums by block.
  std::size_t workspace_bytes() const override { return (rows_.per_sample + 2 * blocks_.count()) * sizeof(float); }

  void forward(const ForwardCall& call) override {
    const bool training = !call.saved.empty();
    auto* const losses = static_cast<float*>(call.workspace);
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      float count = 0;
      for (std::int64_t i = 0; i < rows_.per_sample; ++i) {
        const std::int64_t row = sample * rows_.per_sample + i;
        losses[i] = 0;
        if (!rows_.counts(call.inputs[1], row)) continue;
        const RowLoss of_row = row_loss(call, row, losses + rows_.per_sample);
        losses[i] = of_row.loss;
        if (training) {
          static_cast<float*>(call.saved[0])[row] = of_row.normalizer.maximum;
          static_cast<float*>(call.saved[1])[row] = of_row.normalizer.log_sum;
        }
        count += 1;
      }
      output(call, 0)[sample] = sum_of(losses, rows_.per_sample);
      output(call, 1)[sample] = count;
    }
  }

  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    for (std::int64_t row = 0; row < rows_.rows(); ++row) row_gradient(call, row);
  }

 private:
  struct RowLoss {
    float loss;
    RowNormalizer normalizer;
  };
  /// Sum of a row's target after smoothing.
  float weight_of(const float* t) const { return keep_ * sum_of(t, rows_.classes) + spread_ * rows_.classes; }
  /// `scratch`: two floats a block.
  RowLoss row_loss(const ForwardCall& call, std::int64_t row, float* scratch) const {
    const std::int64_t n = rows_.classes;
    const float* x = input(call) + row * n;
    const auto [maximum, exponentials, total] = row_sums(x, blocks_, {scratch, scratch + blocks_.count()}, spread_ > 0);
    const float log_sum = device::vector_log(exponentials);
    float weight = 1, product = 0;
    if (rows_.soft) {
      const float* t = input(call, 1) + row * n;
      weight = weight_of(t);
      product = keep_ * soft_product(t, x, n, maximum);
    } else {
      product = keep_ * (x[rows_.label(call.inputs[1], row)] - maximum);
    }
    return {weight * log_sum - (product + spread_ * total), {maximum, log_sum}};
  }

  void row_gradient(const BackwardCall& call, std::int64_t row) const {
    const std::int64_t n = rows_.classes;
    float* dx = input_gradient(call) + row * n;
    if (!rows_.counts(call.inputs[1], row)) {
      std::fill_n(dx, n, 0.0F);
      return;
    }
    const RowNormalizer normalizer{static_cast<const float*>(call.saved[0])[row],
                                   static_cast<const float*>(call.saved[1])[row]};
    const float* x = input(call) + row * n;
    if (rows_.soft) {
      const float* t = input(call, 1) + row * n;
      softmax_gradient(x, dx, n, normalizer, weight_of(t), spread_);
      subtract_scaled(t, keep_, dx, n);
    } else {
      softmax_gradient(x, dx, n, normalizer, 1, spread_);
      dx[rows_.label(call.inputs[1], row)] -= keep_;
    }
  }

  ClassRows rows_;
  ClassBlocks blocks_;
  float keep_, spread_;
};

}  // namespace

std::unique_ptr<Kernel> make_log_loss_cpu(const KernelRequest& request, double label_smoothing) {
  return std::make_unique<CrossEntropyCpu>(ClassRows(request), static_cast<float>(label_smoothing));
}

std::unique_ptr<Kernel> make_cross_entropy_cpu(const KernelRequest& request) {
  return make_log_loss_cpu(request, request.attributes->number("label_smoothing"));
}

}  // namespace lockstep::ops
