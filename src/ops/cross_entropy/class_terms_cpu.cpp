// cross_entropy with `focal`, and kl_divergence, on the CPU: the losses of class_terms.hpp. Sums have the association
// of device/cpu/reduce.hpp.
#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/softmax.hpp"
#include "ops/cross_entropy/class_terms.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

namespace {

using device::kLanes;
using device::Lanes;

/// log softmax(x)_k = (x_k - maximum) - log_sum
struct RowShift {
  float maximum, log_sum;
};

LOCKSTEP_VECTORIZED RowShift shift_of_row(const float* x, std::int64_t n) {
  const float maximum = device::maximum(x, n);
  return {maximum, device::vector_log(device::sum_of_exponentials(x, n, maximum))};
}

template <class Term>
LOCKSTEP_VECTORIZED float sum_of_terms(Term term, const float* x, const float* q, std::int64_t n, RowShift row) {
  Lanes total = {}, a, b;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    device::load(a, x + i);
    device::load(b, q + i);
    total += term.of(b, (a - row.maximum) - row.log_sum);
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) total[lane] += term.of(q[i], (x[i] - row.maximum) - row.log_sum);
  return device::combine(total);
}

/// The gradient by x, which dx may be; slopes are written over q.
template <class Term>
LOCKSTEP_VECTORIZED void terms_gradient(Term term, const float* x, float* q, float* dx, std::int64_t n, RowShift row) {
  device::map(q, x, q, n, [=](const Lanes& target, const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes {
    return term.slope(target, (v - row.maximum) - row.log_sum);
  });
  const float total = device::sum(q, n);
  device::map(x, q, dx, n, [=](const Lanes& v, const Lanes& slope) LOCKSTEP_INLINE_LAMBDA -> Lanes {
    return slope - device::vector_exp((v - row.maximum) - row.log_sum) * total;
  });
}

LOCKSTEP_VECTORIZED float sum_of_row_losses(const float* losses, std::int64_t n) {
  return device::sum(losses, n);
}

template <class Term>
class ClassTermsCpu final : public Kernel {
 public:
  ClassTermsCpu(const KernelRequest& request, double smoothing, Term term)
      : rows_(request),
        keep_(1 - static_cast<float>(smoothing)),
        spread_(static_cast<float>(smoothing) / rows_.classes),
        term_(term) {}

  /// The losses of a sample's rows, and the target of one of them.
  std::size_t workspace_bytes() const override { return (rows_.per_sample + rows_.classes) * sizeof(float); }

  void forward(const ForwardCall& call) override {
    auto* const losses = static_cast<float*>(call.workspace);
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      float count = 0;
      for (std::int64_t i = 0; i < rows_.per_sample; ++i) {
        const std::int64_t row = sample * rows_.per_sample + i;
        losses[i] = 0;
        if (!rows_.counts(call.inputs[1], row)) continue;
        losses[i] = row_loss(call, row);
        count += 1;
      }
      output(call, 0)[sample] = sum_of_row_losses(losses, rows_.per_sample);
      output(call, 1)[sample] = count;
    }
  }

  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    for (std::int64_t row = 0; row < rows_.rows(); ++row) {
      float* const dx = input_gradient(call) + row * rows_.classes;
      if (!rows_.counts(call.inputs[1], row)) {
        std::fill_n(dx, rows_.classes, 0.0F);
        continue;
      }
      const RowShift shift{static_cast<const float*>(call.saved[0])[row],
                           static_cast<const float*>(call.saved[1])[row]};
      terms_gradient(term_, input(call) + row * rows_.classes, target_of(call, row), dx, rows_.classes, shift);
    }
  }

 private:
  /// A row's target after smoothing, in the workspace.
  template <class Call>
  float* target_of(const Call& call, std::int64_t row) const {
    float* const q = static_cast<float*>(call.workspace) + rows_.per_sample;
    if (rows_.soft) {
      const float* t = input(call, 1) + row * rows_.classes;
      for (std::int64_t k = 0; k < rows_.classes; ++k) q[k] = keep_ * t[k] + spread_;
    } else {
      std::fill_n(q, rows_.classes, spread_);
      q[rows_.label(call.inputs[1], row)] = keep_ + spread_;
    }
    return q;
  }

  float row_loss(const ForwardCall& call, std::int64_t row) const {
    const float* x = input(call) + row * rows_.classes;
    const RowShift shift = shift_of_row(x, rows_.classes);
    if (!call.saved.empty()) {
      static_cast<float*>(call.saved[0])[row] = shift.maximum;
      static_cast<float*>(call.saved[1])[row] = shift.log_sum;
    }
    return sum_of_terms(term_, x, target_of(call, row), rows_.classes, shift);
  }

  ClassRows rows_;
  float keep_, spread_;
  Term term_;
};

}  // namespace

std::unique_ptr<Kernel> make_focal_cpu(const KernelRequest& request) {
  const FocalTerm term(focal_of(*request.attributes));
  return std::make_unique<ClassTermsCpu<FocalTerm>>(request, request.attributes->number("label_smoothing"), term);
}

std::unique_ptr<Kernel> make_kl_divergence_cpu(const KernelRequest& request) {
  return std::make_unique<ClassTermsCpu<DivergenceTerm>>(request, 0, DivergenceTerm{});
}

}  // namespace lockstep::ops
