// lstm and gru on a Grid. The gates' products of all inputs are one launch; each step is one launch more, with a group
// per unit, which sums over the units of the step before; backward the same from the last step to the first, with a
// thread per unit. Gradients of parameters and of the input: a thread per element, which sums in order.
#pragma once

#include <memory>

#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/recurrent/recurrent_cells.hpp"
#include "ops/recurrent/recurrent_sizes.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

/// Row i of [batch, steps, kGates, units]: what a gate gets of the input, written where the cell keeps its values.
template <class Cell>
struct InputGatesFunctor {
  const float* x;
  RecurrentWeights weights;
  float* kept;
  RecurrentSizes sizes;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const std::int64_t gates = Cell::kGates * sizes.units, row = i / gates, gate = i % gates;
    const float *xr = x + row * sizes.in, *w = weights.ih + gate * sizes.in;
    const float product = group.sum(sizes.in, [=](std::int64_t k) { return xr[k] * w[k]; });
    const float result = weights.bias_ih == nullptr ? product : product + weights.bias_ih[gate];
    float* to = kept + row * Cell::kKept * sizes.units + gate;
    group.once([=] { *to = result; });
  }
};

/// Row i of [batch, units]: step t.
template <class Cell>
struct RecurrentStepFunctor {
  RecurrentWeights weights;
  float *kept, *y;
  RecurrentSizes sizes;
  std::int64_t t;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const std::int64_t units = sizes.units, unit = i % units, row = i / units * sizes.steps + t;
    const float* last = y + (row - 1) * units;
    float h[Cell::kGates];
    for (int gate = 0; gate < Cell::kGates; ++gate) {
      const float* w = weights.hh + (gate * units + unit) * units;
      h[gate] = t == 0 ? 0.0F : group.sum(units, [=](std::int64_t k) { return last[k] * w[k]; });
      if (weights.bias_hh != nullptr) h[gate] += weights.bias_hh[gate * units + unit];
    }
    const float before = t == 0                   ? 0.0F
                         : Cell::kRemembersOutput ? last[unit]
                                                  : kept[((row - 1) * Cell::kKept + Cell::kMemory) * units + unit];
    float x[Cell::kGates], keep[Cell::kKept], out = 0;
    float* const at = kept + row * Cell::kKept * units + unit;
    for (int gate = 0; gate < Cell::kGates; ++gate) x[gate] = at[gate * units];
    group.barrier();
    Cell::forward(x, h, before, keep, out);
    for (int k = 0; k < Cell::kKept; ++k) {
      const float value = keep[k];
      group.once([=] { at[k * units] = value; });
    }
    float* to = y + row * units + unit;
    group.once([=] { *to = out; });
  }
};

/// Element i of [batch, units]: backward of step t.
template <class Cell>
struct RecurrentStepGradientFunctor {
  const float *hh, *kept, *y, *dy;
  float *dx, *dh, *carry;
  RecurrentSizes sizes;
  std::int64_t t;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t units = sizes.units, unit = i % units, row = i / units * sizes.steps + t;
    const std::int64_t gates = Cell::kGates * units;
    const bool last = t + 1 == sizes.steps;
    float later = 0;
    for (std::int64_t k = 0; k < gates && !last; ++k) later += dh[(row + 1) * gates + k] * hh[k * units + unit];
    float keep[Cell::kKept], to_x[Cell::kGates], to_h[Cell::kGates], carried = last ? 0.0F : carry[i];
    for (int k = 0; k < Cell::kKept; ++k) keep[k] = kept[(row * Cell::kKept + k) * units + unit];
    const float before = t == 0                   ? 0.0F
                         : Cell::kRemembersOutput ? y[(row - 1) * units + unit]
                                                  : kept[((row - 1) * Cell::kKept + Cell::kMemory) * units + unit];
    Cell::backward(keep, before, dy[row * units + unit] + later, carried, to_x, to_h);
    carry[i] = carried;
    for (int gate = 0; gate < Cell::kGates; ++gate) {
      dx[row * gates + gate * units + unit] = to_x[gate];
      if (!Cell::kSameGradients) dh[row * gates + gate * units + unit] = to_h[gate];
    }
  }
};

/// Element i of [batch, steps, in].
struct RecurrentInputGradientFunctor {
  const float *gradients, *ih;
  float* dx;
  std::int64_t gates, in;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const float* g = gradients + i / in * gates;
    float sum = 0;
    for (std::int64_t k = 0; k < gates; ++k) sum += g[k] * ih[k * in + i % in];
    dx[i] = sum;
  }
};

/// Element i of a weight [gates, columns]: the sum over rows of gates' gradients times `x` [batch, steps, columns] of
/// the same step, or, with `shift` 1, of the step before.
struct RecurrentWeightGradientFunctor {
  const float *gradients, *x;
  float* dw;
  RecurrentSizes sizes;
  std::int64_t gates, columns, shift;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t gate = i / columns, column = i % columns;
    float sum = 0;
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      for (std::int64_t t = shift; t < sizes.steps; ++t) {
        const std::int64_t row = b * sizes.steps + t;
        sum += gradients[row * gates + gate] * x[(row - shift) * columns + column];
      }
    }
    dw[i] = sum;
  }
};

template <class Grid, class Cell>
class RecurrentGrid final : public Kernel {
 public:
  explicit RecurrentGrid(const KernelRequest& request)
      : sizes_(request), gates_(Cell::kGates * sizes_.units), training_(request.mode == Mode::training) {}

  std::size_t workspace_bytes() const override {
    if (!training_) return static_cast<std::size_t>(sizes_.rows() * Cell::kKept * sizes_.units) * sizeof(float);
    return RecurrentGradients<Cell>::bytes(sizes_) + device::row_sums_bytes(sizes_.rows(), gates_);
  }

  void forward(const ForwardCall& call) override {
    const RecurrentWeights weights = weights_of(call, sizes_.bias);
    auto* kept = static_cast<float*>(call.saved.empty() ? call.workspace : call.saved[0]);
    Grid::rows(stream_of(call), sizes_.rows() * gates_, InputGatesFunctor<Cell>{input(call), weights, kept, sizes_});
    for (std::int64_t t = 0; t < sizes_.steps; ++t) {
      Grid::rows(stream_of(call), sizes_.batch * sizes_.units,
                 RecurrentStepFunctor<Cell>{weights, kept, output(call), sizes_, t});
    }
  }

  void backward(const BackwardCall& call) override {
    const RecurrentGradients<Cell> made(sizes_, call.workspace);
    const RecurrentWeights weights = weights_of(call, sizes_.bias);
    const auto* y = static_cast<const float*>(call.outputs[0]);
    for (std::int64_t t = sizes_.steps - 1; t >= 0; --t) {
      Grid::each(stream_of(call), sizes_.batch * sizes_.units,
                 RecurrentStepGradientFunctor<Cell>{weights.hh, static_cast<const float*>(call.saved[0]), y,
                                                    output_gradient(call), made.dx, made.dh, made.carry, sizes_, t});
    }
    if (float* dx = input_gradient(call); dx != nullptr) {
      Grid::each(stream_of(call), sizes_.rows() * sizes_.in,
                 RecurrentInputGradientFunctor{made.dx, weights.ih, dx, gates_, sizes_.in});
    }
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      Grid::each(stream_of(call), gates_ * sizes_.in,
                 RecurrentWeightGradientFunctor{made.dx, input(call), dw, sizes_, gates_, sizes_.in, 0});
    }
    if (float* dw = call.parameter_gradients[1]; dw != nullptr) {
      Grid::each(stream_of(call), gates_ * sizes_.units,
                 RecurrentWeightGradientFunctor{made.dh, y, dw, sizes_, gates_, sizes_.units, 1});
    }
    if (!sizes_.bias) return;
    bias_gradient(call, made.dx, call.parameter_gradients[2], made.scratch);
    bias_gradient(call, made.dh, call.parameter_gradients[3], made.scratch);
  }

 private:
  void bias_gradient(const BackwardCall& call, const float* gradients, float* db, float* scratch) const {
    if (db == nullptr) return;
    launch_row_sums<Grid>(stream_of(call), device::RowElements<float>{gradients, gates_}, sizes_.rows(), gates_, db,
                          scratch);
  }

  RecurrentSizes sizes_;
  std::int64_t gates_;  ///< elements of a row
  bool training_;
};

template <class Grid>
std::unique_ptr<Kernel> make_lstm_grid(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<RecurrentGrid<Grid, LstmCell>>(request); });
}

template <class Grid>
std::unique_ptr<Kernel> make_gru_grid(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<RecurrentGrid<Grid, GruCell>>(request); });
}

}  // namespace lockstep::ops
