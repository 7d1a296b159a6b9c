// The losses of class_terms.hpp on a Grid, one group per row of scores. A label that is no class gives NaN, and the run
// ends as diverged, because a kernel cannot throw.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/cross_entropy/class_terms.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample_grid.hpp"

namespace lockstep::ops {

/// Read in both directions. `kLabels`: the target may be labels.
template <bool kLabels>
struct ClassTermRows {
  ClassTarget target;
  const float* x;      ///< [rows, classes]
  float keep, spread;  ///< label smoothing: what the target keeps, and what each class gets

  /// The target of class k of a row, after smoothing.
  LOCKSTEP_HOST_DEVICE float of(std::int64_t row, std::int64_t k) const {
    if (!kLabels || target.labels == nullptr) return keep * target.weights[row * target.classes + k] + spread;
    if (!target.is_class(target.labels[row])) return __builtin_nanf("");
    return target.labels[row] == k ? keep + spread : spread;
  }
  LOCKSTEP_HOST_DEVICE bool is_valid(std::int64_t row) const {
    return !kLabels || target.labels == nullptr || target.is_class(target.labels[row]);
  }
  LOCKSTEP_HOST_DEVICE bool counts(std::int64_t row) const { return !kLabels || target.counts(row); }
};

template <class Term>
struct ClassTermsFunctor {
  Term term;
  ClassTermRows<Term::kLabels> rows;
  float* losses;             ///< [rows]
  float *maximum, *log_sum;  ///< [rows]; null in inference
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    if (!rows.counts(row)) return;
    const std::int64_t n = rows.target.classes;
    const float* x = rows.x + row * n;
    const ClassTermRows<Term::kLabels> of_rows = rows;
    const Term with = term;
    const float largest = group.maximum(n, [=](std::int64_t i) { return x[i]; });
    const float exponentials = group.sum(n, [=](std::int64_t i) { return device::vector_exp(x[i] - largest); });
    const float log_exponentials = device::vector_log(exponentials);
    const float total =
        group.sum(n, [=](std::int64_t i) { return with.of(of_rows.of(row, i), (x[i] - largest) - log_exponentials); });
    const float loss = rows.is_valid(row) ? total : __builtin_nanf("");
    float *loss_to = losses + row, *maximum_to = maximum, *log_sum_to = log_sum;
    group.once([=] {
      *loss_to = loss;
      if (maximum_to == nullptr) return;
      maximum_to[row] = largest;
      log_sum_to[row] = log_exponentials;
    });
  }
};

/// Where the gradient is written: rows of T, `step` elements apart (Value::rounded_gradient).
template <class T>
struct GradientRows {
  T* dx;
  std::int64_t step;
  LOCKSTEP_HOST_DEVICE T* row(std::int64_t i) const { return dx + i * step; }
};

template <class Term, class T>
struct ClassTermsGradientFunctor {
  Term term;
  ClassTermRows<Term::kLabels> rows;
  const float *maximum, *log_sum;
  GradientRows<T> gradient;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const std::int64_t n = rows.target.classes;
    T* to = gradient.row(row);
    if (!rows.counts(row)) {
      group.each(n, [=](std::int64_t i) { to[i] = 0.0F; });
      return;
    }
    const float *x = rows.x + row * n, largest = maximum[row], log_sum_of_row = log_sum[row];
    const ClassTermRows<Term::kLabels> of_rows = rows;
    const Term with = term;
    const auto slope = [=](std::int64_t i) {
      return with.slope(of_rows.of(row, i), (x[i] - largest) - log_sum_of_row);
    };
    const float total = group.sum(n, slope);
    group.each(
        n, [=](std::int64_t i) { to[i] = slope(i) - device::vector_exp((x[i] - largest) - log_sum_of_row) * total; });
  }
};

/// Its workspace holds the rows' losses. T: what the gradient is stored in, with `gap` elements between its rows.
template <class Grid, class Term, class T>
class ClassTermsGrid final : public Kernel {
 public:
  ClassTermsGrid(const ClassRows& rows, float smoothing, Term term, std::int64_t gap)
      : rows_(rows), keep_(1 - smoothing), spread_(smoothing / rows.classes), term_(term), gap_(gap) {}

  std::size_t workspace_bytes() const override { return rows_.rows() * sizeof(float); }
  void forward(const ForwardCall& call) override {
    const ClassTermRows<Term::kLabels> rows = rows_of(call);
    auto* losses = static_cast<float*>(call.workspace);
    auto* maximum = call.saved.empty() ? nullptr : static_cast<float*>(call.saved[0]);
    auto* log_sum = call.saved.empty() ? nullptr : static_cast<float*>(call.saved[1]);
    Grid::rows(stream_of(call), rows_.rows(), ClassTermsFunctor<Term>{term_, rows, losses, maximum, log_sum});
    Grid::rows(stream_of(call), rows_.batch,
               SampleSumFunctor{rows.target, losses, output(call, 0), output(call, 1), rows_.per_sample});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    Grid::rows(stream_of(call), rows_.rows(),
               ClassTermsGradientFunctor<Term, T>{term_, rows_of(call), static_cast<const float*>(call.saved[0]),
                                                  static_cast<const float*>(call.saved[1]),
                                                  GradientRows<T>{input_gradient<T>(call), rows_.classes + gap_}});
  }

 private:
  template <class Call>
  ClassTermRows<Term::kLabels> rows_of(const Call& call) const {
    return {ClassTarget(rows_, call.inputs[1]), input(call), keep_, spread_};
  }

  ClassRows rows_;
  float keep_, spread_;
  Term term_;
  std::int64_t gap_;
};

/// make(element) with the type that the gradient is stored in, for a loss that can round it (OpDef::rounds_gradient).
template <class Make>
std::unique_ptr<Kernel> make_for_gradient(const KernelRequest& request, const Make& make) {
  return make_for_float32(request, [&] {
    LOCKSTEP_CHECK(request.rounded_gradient.dtype != DType::f16, "a gradient of fp16 is scaled before it is rounded");
    return request.rounded_gradient.rounds() ? make(device::Element<Bfloat16>{}) : make(float{});
  });
}

}  // namespace lockstep::ops
