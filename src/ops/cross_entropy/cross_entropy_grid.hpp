// The negative log likelihood on a Grid, in forward one group per row of scores; the formulas are those of
// cross_entropy_cpu.cpp. A label that is no class gives NaN, and the run ends as diverged, because a kernel cannot
// throw.
#pragma once

#include <memory>

#include "core/divisor.hpp"
#include "device/float_math.hpp"
#include "device/gpu/grid.hpp"
#include "ops/cross_entropy/class_terms_grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample_grid.hpp"

namespace lockstep::ops {

/// Read in both directions.
struct LogLossRows {
  ClassTarget target;
  const float* x;      ///< [rows, classes]
  float keep, spread;  ///< label smoothing: what the target keeps, and what each class gets

  LogLossRows(const ClassRows& rows, const void* prediction, const void* target_of_rows, float kept,
              float spread_to_each)
      : target(rows, target_of_rows), x(static_cast<const float*>(prediction)), keep(kept), spread(spread_to_each) {}

  /// Sum of the target after smoothing, if it has a weight for each class.
  template <class Group>
  LOCKSTEP_HOST_DEVICE float weight_of(Group& group, std::int64_t row) const {
    const std::int64_t n = target.classes;
    const float* t = target.weights + row * n;
    return keep * group.sum(n, [=](std::int64_t i) { return t[i]; }) + spread * static_cast<float>(n);
  }
};

/// Log-softmax of a row: (x - maximum) - log_sum.
struct RowNormalizers {
  float *maximum, *log_sum;  ///< [rows]; null in inference
};

struct LogLossFunctor {
  LogLossRows rows;
  float* losses;  ///< [rows]
  RowNormalizers saved;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    if (!rows.target.counts(row)) return;
    const std::int64_t n = rows.target.classes;
    const float* x = rows.x + row * n;
    const float largest = group.maximum(n, [=](std::int64_t i) { return x[i]; });
    const float exponentials = group.sum(n, [=](std::int64_t i) { return device::vector_exp(x[i] - largest); });
    const float total = rows.spread > 0 ? group.sum(n, [=](std::int64_t i) { return x[i] - largest; }) : 0;
    const float log_sum = device::vector_log(exponentials);
    float weight = 1, product = 0;
    if (rows.target.labels == nullptr) {
      const float* t = rows.target.weights + row * n;
      weight = rows.weight_of(group, row);
      product = rows.keep * group.sum(n, [=](std::int64_t i) { return t[i] * (x[i] - largest); });
    } else {
      const std::int64_t label = rows.target.labels[row];
      product = rows.target.is_class(label) ? rows.keep * (x[label] - largest) : __builtin_nanf("");
    }
    const float loss = weight * log_sum - (product + rows.spread * total);
    float* loss_to = losses + row;
    const RowNormalizers to = saved;
    group.once([=] {
      *loss_to = loss;
      if (to.maximum == nullptr) return;
      to.maximum[row] = largest;
      to.log_sum[row] = log_sum;
    });
  }
};

/// If the target is a label: one thread per element, since rows can be as many as threads, and each is long.
struct LabelGradientFunctor {
  LogLossRows rows;
  Divisor classes;
  const float *maximum, *log_sum;
  float* dx;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    const std::int64_t row = i / classes;
    if (!rows.target.counts(row)) return 0;
    const std::int64_t label = rows.target.labels[row];
    const float off = rows.target.is_class(label) ? 0 : __builtin_nanf("");
    const float share = device::vector_exp((rows.x[i] - maximum[row]) - log_sum[row]) - rows.spread;
    return (i - row * classes.value() == label ? share - rows.keep : share) + off;
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { dx[i] = value; }
};

/// If the target has a weight for each class: one group per row.
struct WeightsGradientFunctor {
  LogLossRows rows;
  const float *maximum, *log_sum;
  float* dx;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const std::int64_t n = rows.target.classes;
    const float *x = rows.x + row * n, *t = rows.target.weights + row * n;
    float* to = dx + row * n;
    const float largest = maximum[row], log_sum_of_row = log_sum[row];
    const float keep = rows.keep, spread = rows.spread, weight = rows.weight_of(group, row);
    group.each(n, [=](std::int64_t i) {
      const float share = device::vector_exp((x[i] - largest) - log_sum_of_row) * weight - spread;
      to[i] = share - keep * t[i];
    });
  }
};

/// Its workspace holds the rows' losses.
template <class Grid>
class LogLossGrid final : public Kernel {
 public:
  LogLossGrid(const ClassRows& rows, float smoothing)
      : rows_(rows), keep_(1 - smoothing), spread_(smoothing / static_cast<float>(rows.classes)) {}

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(rows_.rows()) * sizeof(float);
  }
  void forward(const ForwardCall& call) override {
    const LogLossRows rows(rows_, call.inputs[0], call.inputs[1], keep_, spread_);
    auto* losses = static_cast<float*>(call.workspace);
    RowNormalizers saved{};
    if (!call.saved.empty()) saved = {static_cast<float*>(call.saved[0]), static_cast<float*>(call.saved[1])};
    Grid::rows(stream_of(call), rows_.rows(), LogLossFunctor{rows, losses, saved});
    Grid::rows(stream_of(call), rows_.batch,
               SampleSumFunctor{rows.target, losses, output(call, 0), output(call, 1), rows_.per_sample});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const LogLossRows rows(rows_, call.inputs[0], call.inputs[1], keep_, spread_);
    const auto *maximum = static_cast<const float*>(call.saved[0]), *log_sum = static_cast<const float*>(call.saved[1]);
    float* const dx = input_gradient(call);
    if (rows_.soft)
      return Grid::rows(stream_of(call), rows_.rows(), WeightsGradientFunctor{rows, maximum, log_sum, dx});
    const Divisor classes(rows_.classes);
    Grid::each(stream_of(call), rows_.rows() * rows_.classes,
               LabelGradientFunctor{rows, classes, maximum, log_sum, dx});
  }

 private:
  ClassRows rows_;
  float keep_, spread_;
};

template <class Grid>
std::unique_ptr<Kernel> make_log_loss_of(const KernelRequest& request, double label_smoothing) {
  return make_for_float32(request, [&] {
    return std::make_unique<LogLossGrid<Grid>>(ClassRows(request), static_cast<float>(label_smoothing));
  });
}

template <class Grid>
std::unique_ptr<Kernel> make_cross_entropy_grid(const KernelRequest& request) {
  if (focal_of(*request.attributes) > 0) {
    return make_class_terms_of<Grid>(request, request.attributes->number("label_smoothing"),
                                     FocalTerm(focal_of(*request.attributes)));
  }
  return make_log_loss_of<Grid>(request, request.attributes->number("label_smoothing"));
}

template <class Grid>
std::unique_ptr<Kernel> make_kl_divergence_grid(const KernelRequest& request) {
  return make_class_terms_of<Grid>(request, 0, DivergenceTerm{});
}

template <class Grid>
std::unique_ptr<Kernel> make_perplexity_grid(const KernelRequest& request) {
  return make_log_loss_of<Grid>(request, 0);
}

}  // namespace lockstep::ops
