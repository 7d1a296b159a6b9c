// The metrics of element_metrics.hpp on a Grid, a group a sample.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/element_metrics/element_metrics.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_element_grid.hpp"

namespace lockstep::ops {

template <class Score>
struct ElementMetricFunctor {
  const float* x;
  ElementTarget<Score::kBinary> target;
  float *value, *count;
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t sample) const {
    const std::int64_t first = sample * size;
    const float* from = x;
    const ElementTarget<Score::kBinary> of = target;
    const float total =
        group.sum(size, [=](std::int64_t i) { return Score::of(from[first + i], of.at(first + i)).value; });
    const float counted =
        group.sum(size, [=](std::int64_t i) { return Score::of(from[first + i], of.at(first + i)).count; });
    float *value_to = value + sample, *count_to = count + sample;
    group.once([=] {
      *value_to = total;
      *count_to = counted;
    });
  }
};

template <class Grid, class Score>
class ElementMetricGrid final : public Kernel {
 public:
  explicit ElementMetricGrid(const KernelRequest& request) : rows_(request) {}

  void forward(const ForwardCall& call) override {
    Grid::rows(stream_of(call), rows_.batch,
               ElementMetricFunctor<Score>{
                   input(call), {rows_, call.inputs[1]}, output(call, 0), output(call, 1), rows_.size});
  }

 private:
  ElementRows rows_;
};

template <class Grid, class Score>
std::unique_ptr<Kernel> make_element_metric_of(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<ElementMetricGrid<Grid, Score>>(request); });
}

template <class Grid>
std::unique_ptr<Kernel> make_mae_grid(const KernelRequest& request) {
  return make_element_metric_of<Grid, AbsoluteErrorScore>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_rmse_grid(const KernelRequest& request) {
  return make_element_metric_of<Grid, SquaredErrorScore>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_binary_accuracy_grid(const KernelRequest& request) {
  return make_element_metric_of<Grid, BinaryAccuracyScore>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_precision_grid(const KernelRequest& request) {
  return make_element_metric_of<Grid, PrecisionScore>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_recall_grid(const KernelRequest& request) {
  return make_element_metric_of<Grid, RecallScore>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_iou_grid(const KernelRequest& request) {
  return make_element_metric_of<Grid, IouScore>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_f1_grid(const KernelRequest& request) {
  return make_element_metric_of<Grid, F1Score>(request);
}

}  // namespace lockstep::ops
