// The losses of element_losses.hpp on a Grid, a group a sample. A target that is out of range gives NaN, and the run
// ends as diverged: a kernel cannot throw.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/element_losses/element_losses.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_element_grid.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

template <class Formula>
struct ElementLossFunctor {
  Formula formula;
  const float* x;
  ElementTarget<Formula::kBinary> target;
  float *loss, *count;
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t sample) const {
    const std::int64_t first = sample * size;
    const float* from = x;
    const Formula with = formula;
    const ElementTarget<Formula::kBinary> of = target;
    const float total = group.sum(size, [=](std::int64_t i) {
      const float t = of.at(first + i);
      if (Formula::kBinary && !(t >= 0 && t <= 1)) return __builtin_nanf("");
      return with.of(from[first + i], t);
    });
    float *loss_to = loss + sample, *count_to = count + sample;
    const float counted = size;
    group.once([=] {
      *loss_to = total;
      *count_to = counted;
    });
  }
};

template <class Formula>
struct ElementLossGradientFunctor {
  Formula formula;
  const float* x;
  ElementTarget<Formula::kBinary> target;
  float* dx;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return formula.gradient(x[i], target.at(i)); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { dx[i] = value; }
};

template <class Grid, class Formula>
class ElementLossGrid final : public Kernel {
 public:
  explicit ElementLossGrid(const KernelRequest& request) : rows_(request), formula_(*request.attributes) {}

  void forward(const ForwardCall& call) override {
    Grid::rows(stream_of(call), rows_.batch,
               ElementLossFunctor<Formula>{
                   formula_, input(call), {rows_, call.inputs[1]}, output(call, 0), output(call, 1), rows_.size});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    Grid::each(
        stream_of(call), rows_.elements(),
        ElementLossGradientFunctor<Formula>{formula_, input(call), {rows_, call.inputs[1]}, input_gradient(call)});
  }

 private:
  ElementRows rows_;
  Formula formula_;
};

template <class Grid, class Formula>
std::unique_ptr<Kernel> make_element_loss_of(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<ElementLossGrid<Grid, Formula>>(request); });
}

template <class Grid>
std::unique_ptr<Kernel> make_mean_squared_error_grid(const KernelRequest& request) {
  return make_element_loss_of<Grid, SquaredError>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_mean_absolute_error_grid(const KernelRequest& request) {
  return make_element_loss_of<Grid, AbsoluteError>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_huber_grid(const KernelRequest& request) {
  return make_element_loss_of<Grid, HuberError>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_binary_cross_entropy_grid(const KernelRequest& request) {
  if (focal_of(*request.attributes) > 0) return make_element_loss_of<Grid, FocalBinaryCrossEntropy>(request);
  return make_element_loss_of<Grid, BinaryCrossEntropy>(request);
}

}  // namespace lockstep::ops
