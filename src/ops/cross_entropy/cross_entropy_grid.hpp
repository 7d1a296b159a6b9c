// The negative log likelihood on a Grid, one group per row of scores, or per block of a long row; the formulas are
// those of cross_entropy_cpu.cpp. A label that is no class gives NaN, and the run ends as diverged, because a kernel
// cannot throw.
#pragma once

#include <memory>

#include "core/divisor.hpp"
#include "device/float_math.hpp"
#include "device/gpu/grid.hpp"
#include "ops/cross_entropy/class_blocks.hpp"
#include "ops/cross_entropy/class_terms_kernels.hpp"
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
    return keep * group.sum(n, [=](std::int64_t i) { return t[i]; }) + spread * n;
  }
};

/// Log-softmax of a row: (x - maximum) - log_sum.
struct RowNormalizers {
  float *maximum, *log_sum;  ///< [rows]; null in inference
};

/// Block i of all blocks of all rows.
struct RowBlock {
  std::int64_t row, number;
  LOCKSTEP_HOST_DEVICE RowBlock(std::int64_t i, const Divisor& blocks) : row(i / blocks), number(i % blocks) {}
  LOCKSTEP_HOST_DEVICE std::int64_t first() const { return number * kClassBlock; }  ///< class
};

/// [rows, blocks]
struct BlockExponentials {
  float *maxima, *sums;
};

/// Reads a block of scores once, into registers.
struct BlockExponentialsFunctor {
  static constexpr int kMost = static_cast<int>(kClassBlock) / device::kGroupLanes;
  LogLossRows rows;
  Divisor blocks;  ///< of a row
  BlockExponentials to;

  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const RowBlock block(i, blocks);
    if (!rows.target.counts(block.row)) return;
    const std::int64_t n = rows.target.classes;
    const float* x = rows.x + block.row * n + block.first();
    const int size = ClassBlocks{n}.size(block.number);
    if (size == kClassBlock) {
      sum<true>(group, x, size, i);
    } else {
      sum<false>(group, x, size, i);
    }
  }

 private:
  template <bool kWhole, class Group>
  LOCKSTEP_HOST_DEVICE void sum(Group& group, const float* x, int size, std::int64_t i) const {
    typename Group::template Row<device::LaneElements<float, kMost, kWhole>> kept;
    group.read(kept, size, [=](int k) { return x[k]; });
    const float largest = group.maximum(kept, size, [](float value) { return value; });
    const float reference = block_reference(largest);
    const float total = group.sum(kept, size, [=](float value) { return device::vector_exp(value - reference); });
    float *maximum_to = to.maxima + i, *sum_to = to.sums + i;
    group.once([=] {
      *maximum_to = largest;
      *sum_to = total;
    });
  }
};

struct LogLossFunctor {
  LogLossRows rows;
  BlockExponentials blocks;  ///< null: a row is one block, which is summed here
  float* losses;             ///< [rows]
  RowNormalizers saved;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    if (!rows.target.counts(row)) return;
    const std::int64_t n = rows.target.classes;
    const float* x = rows.x + row * n;
    float largest = 0, exponentials = 0;
    if (blocks.maxima == nullptr) {
      largest = group.maximum(n, [=](std::int64_t i) { return x[i]; });
      exponentials = group.sum(n, [=](std::int64_t i) { return device::vector_exp(x[i] - largest); });
    } else {
      const std::int64_t count = ClassBlocks{n}.count();
      const float *maxima = blocks.maxima + row * count, *sums = blocks.sums + row * count;
      largest = group.maximum(count, [=](std::int64_t i) { return maxima[i]; });
      exponentials =
          group.sum(count, [=](std::int64_t i) { return sums[i] * device::vector_exp(maxima[i] - largest); });
    }
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

/// If the target is a label: one group per block of a row.
template <class T>
struct LabelGradientFunctor {
  LogLossRows rows;
  Divisor blocks;  ///< of a row
  const float *maximum, *log_sum;
  GradientRows<T> to;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const RowBlock block(i, blocks);
    const std::int64_t n = rows.target.classes, size = ClassBlocks{n}.size(block.number);
    T* dx = to.row(block.row) + block.first();
    if (!rows.target.counts(block.row)) return group.each(size, [=](std::int64_t k) { dx[k] = 0.0F; });
    const float* x = rows.x + block.row * n + block.first();
    const std::int64_t label = rows.target.labels[block.row];
    const float largest = maximum[block.row], keep = rows.keep, spread = rows.spread;
    const float log_sum_of_row = rows.target.is_class(label) ? log_sum[block.row] : __builtin_nanf("");
    const std::int64_t at = label - block.first();
    group.each(
        size,
        [=](std::int64_t k) {
          const float share = device::vector_exp((x[k] - largest) - log_sum_of_row) - spread;
          return k == at ? share - keep : share;
        },
        [=](std::int64_t k, float value) { dx[k] = value; });
  }
};

/// If the target has a weight for each class: one group per row.
template <class T>
struct WeightsGradientFunctor {
  LogLossRows rows;
  const float *maximum, *log_sum;
  GradientRows<T> to;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const std::int64_t n = rows.target.classes;
    const float *x = rows.x + row * n, *t = rows.target.weights + row * n;
    T* dx = to.row(row);
    const float largest = maximum[row], log_sum_of_row = log_sum[row];
    const float keep = rows.keep, spread = rows.spread, weight = rows.weight_of(group, row);
    group.each(
        n,
        [=](std::int64_t i) {
          const float share = device::vector_exp((x[i] - largest) - log_sum_of_row) * weight - spread;
          return share - keep * t[i];
        },
        [=](std::int64_t i, float value) { dx[i] = value; });
  }
};

/// Its workspace holds the rows' losses, and the sums of their blocks. T: what the gradient is stored in, with `gap`
/// elements between its rows.
template <class Grid, class T>
class LogLossGrid final : public Kernel {
 public:
  LogLossGrid(const ClassRows& rows, float smoothing, std::int64_t gap)
      : rows_(rows), blocks_{rows.classes}, keep_(1 - smoothing), spread_(smoothing / rows.classes), gap_(gap) {}

  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(rows_.rows() + 2 * sums_of_blocks()) * sizeof(float);
  }
  void forward(const ForwardCall& call) override {
    const LogLossRows rows(rows_, call.inputs[0], call.inputs[1], keep_, spread_);
    auto* losses = static_cast<float*>(call.workspace);
    RowNormalizers saved{};
    if (!call.saved.empty()) saved = {static_cast<float*>(call.saved[0]), static_cast<float*>(call.saved[1])};
    BlockExponentials blocks{};
    if (blocks_.several()) {
      float* const after = losses + rows_.rows();
      blocks = {after, after + sums_of_blocks()};
      Grid::rows(stream_of(call), sums_of_blocks(), BlockExponentialsFunctor{rows, Divisor(blocks_.count()), blocks});
    }
    Grid::rows(stream_of(call), rows_.rows(), LogLossFunctor{rows, blocks, losses, saved});
    Grid::rows(stream_of(call), rows_.batch,
               SampleSumFunctor{rows.target, losses, output(call, 0), output(call, 1), rows_.per_sample});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const LogLossRows rows(rows_, call.inputs[0], call.inputs[1], keep_, spread_);
    const auto *maximum = static_cast<const float*>(call.saved[0]), *log_sum = static_cast<const float*>(call.saved[1]);
    const GradientRows<T> to{input_gradient<T>(call), rows_.classes + gap_};
    if (rows_.soft)
      return Grid::rows(stream_of(call), rows_.rows(), WeightsGradientFunctor<T>{rows, maximum, log_sum, to});
    Grid::rows(stream_of(call), rows_.rows() * blocks_.count(),
               LabelGradientFunctor<T>{rows, Divisor(blocks_.count()), maximum, log_sum, to});
  }

 private:
  std::int64_t sums_of_blocks() const { return blocks_.several() ? rows_.rows() * blocks_.count() : 0; }

  ClassRows rows_;
  ClassBlocks blocks_;
  float keep_, spread_;
  std::int64_t gap_;
};

template <class Grid>
std::unique_ptr<Kernel> make_log_loss_of(const KernelRequest& request, double label_smoothing) {
  return make_for_gradient(request, [&]<class T>(T /*element*/) -> std::unique_ptr<Kernel> {
    return std::make_unique<LogLossGrid<Grid, T>>(ClassRows(request), static_cast<float>(label_smoothing),
                                                  request.rounded_gradient.gap);
  });
}

template <class Grid>
std::unique_ptr<Kernel> make_cross_entropy_grid(const KernelRequest& request) {
  if (focal_of(*request.attributes) > 0) {
    const float smoothing = request.attributes->number("label_smoothing");
    const FocalTerm focal(focal_of(*request.attributes));
    return make_for_gradient(request, [&]<class T>(T /*element*/) -> std::unique_ptr<Kernel> {
      return std::make_unique<ClassTermsGrid<Grid, FocalTerm, T>>(ClassRows(request), smoothing, focal,
                                                                  request.rounded_gradient.gap);
    });
  }
  return make_log_loss_of<Grid>(request, request.attributes->number("label_smoothing"));
}

template <class Grid>
std::unique_ptr<Kernel> make_kl_divergence_grid(const KernelRequest& request) {
  return make_for_float32(request, [&] {
    return std::make_unique<ClassTermsGrid<Grid, DivergenceTerm, float>>(ClassRows(request), 0.0F, DivergenceTerm{},
                                                                         std::int64_t{0});
  });
}

template <class Grid>
std::unique_ptr<Kernel> make_perplexity_grid(const KernelRequest& request) {
  return make_log_loss_of<Grid>(request, 0);
}

}  // namespace lockstep::ops
