// lstm and gru on the CPU: one product for the inputs of all steps, then for each step one small product and the cells.
// Backward goes through the steps from last to first, and then makes the gradients of parameters and input by one
// product each over all steps.
#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/gemm.hpp"
#include "device/cpu/lanes.hpp"
#include "ops/elementwise.hpp"
#include "ops/kept_weight.hpp"
#include "ops/recurrent/recurrent_cells.hpp"
#include "ops/recurrent/recurrent_sizes.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

namespace {

using device::kLanes;
using device::Lanes;

LOCKSTEP_INLINE std::int64_t lanes_from(std::int64_t i, std::int64_t end) {
  return end - i < kLanes ? end - i : kLanes;
}

/// One sample's step. `kept` holds what the gates get of the input, and is overwritten. `before` may be null: 0.
template <class Cell>
LOCKSTEP_VECTORIZED void step_forward(const float* h, const float* before, float* kept, float* y, std::int64_t units) {
  Lanes from_x[Cell::kGates], from_h[Cell::kGates], keep[Cell::kKept], remembered, out;
  for (std::int64_t i = 0; i < units; i += kLanes) {
    const std::int64_t count = lanes_from(i, units);
    for (int gate = 0; gate < Cell::kGates; ++gate) {
      device::load_some(from_x[gate], kept + gate * units + i, count);
      device::load_some(from_h[gate], h + gate * units + i, count);
    }
    remembered = Lanes{};
    if (before != nullptr) device::load_some(remembered, before + i, count);
    Cell::forward(from_x, from_h, remembered, keep, out);
    for (int k = 0; k < Cell::kKept; ++k) device::store_some(kept + k * units + i, keep[k], count);
    device::store_some(y + i, out, count);
  }
}

/// dy is the gradient of the step's output by itself, `later` what the step after adds to it.
template <class Cell>
LOCKSTEP_VECTORIZED void step_backward(const float* kept, const float* before, const float* dy, const float* later,
                                       float* carry, float* dx, float* dh, std::int64_t units) {
  Lanes keep[Cell::kKept], to_x[Cell::kGates], to_h[Cell::kGates], remembered, gradient, added, carried;
  for (std::int64_t i = 0; i < units; i += kLanes) {
    const std::int64_t count = lanes_from(i, units);
    for (int k = 0; k < Cell::kKept; ++k) device::load_some(keep[k], kept + k * units + i, count);
    remembered = Lanes{};
    if (before != nullptr) device::load_some(remembered, before + i, count);
    device::load_some(gradient, dy + i, count);
    device::load_some(added, later + i, count);
    device::load_some(carried, carry + i, count);
    gradient = gradient + added;
    Cell::backward(keep, remembered, gradient, carried, to_x, to_h);
    device::store_some(carry + i, carried, count);
    for (int gate = 0; gate < Cell::kGates; ++gate) {
      device::store_some(dx + gate * units + i, to_x[gate], count);
      if (!Cell::kSameGradients) device::store_some(dh + gate * units + i, to_h[gate], count);
    }
  }
}

/// Each row of to[rows, columns], `stride` apart, becomes the bias, or 0 if there is none.
void begin_rows(const float* bias, float* to, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row) {
    if (bias == nullptr) {
      std::fill_n(to + row * stride, columns, 0.0F);
    } else {
      std::copy_n(bias, columns, to + row * stride);
    }
  }
}

template <class Cell>
class RecurrentCpu final : public Kernel {
 public:
  explicit RecurrentCpu(const KernelRequest& request)
      : sizes_(request),
        gates_(Cell::kGates * sizes_.units),
        kept_(Cell::kKept * sizes_.units),
        training_(request.mode == Mode::training),
        recurrent_(sizes_.units, gates_, sizes_.batch, request.keeps_weights, true),
        recurrent_back_(sizes_.units, gates_, sizes_.batch, request.keeps_weights, false) {}

  std::size_t workspace_bytes() const override {
    const auto step = (sizes_.batch * gates_) * sizeof(float);
    if (!training_) return step + (sizes_.rows() * kept_) * sizeof(float);
    return std::max(step, RecurrentGradients<Cell>::bytes(sizes_) + device::row_sums_bytes(sizes_.rows(), gates_));
  }
  std::size_t kept_bytes() const override { return recurrent_.bytes() + (training_ ? recurrent_back_.bytes() : 0); }

  void forward(const ForwardCall& call) override {
    const RecurrentWeights weights = weights_of(call, sizes_.bias);
    auto* h = static_cast<float*>(call.workspace);
    float* kept = call.saved.empty() ? h + sizes_.batch * gates_ : static_cast<float*>(call.saved[0]);
    begin_rows(weights.bias_ih, kept, sizes_.rows(), gates_, kept_);
    device::gemm(sizes_.rows(), gates_, sizes_.in, {input(call), sizes_.in}, {weights.ih, sizes_.in, true},
                 {kept, kept_, true});
    for (std::int64_t t = 0; t < sizes_.steps; ++t) {
      begin_rows(weights.bias_hh, h, sizes_.batch, gates_, gates_);
      if (t > 0) {
        recurrent_.multiply({output(call) + (t - 1) * sizes_.units, sizes_.steps * sizes_.units}, weights.hh,
                            call.step->parameters_version, {h, gates_, true});
      }
      for (std::int64_t b = 0; b < sizes_.batch; ++b) {
        const std::int64_t row = b * sizes_.steps + t;
        step_forward<Cell>(h + b * gates_, before(kept, output(call), row, t), kept + row * kept_,
                           output(call) + row * sizes_.units, sizes_.units);
      }
    }
  }

  void backward(const BackwardCall& call) override {
    const RecurrentGradients<Cell> made(sizes_, call.workspace);
    go_back(call, made);
    const std::int64_t rows = sizes_.rows(), in = sizes_.in;
    if (float* dx = input_gradient(call); dx != nullptr) {
      device::gemm(rows, in, gates_, {made.dx, gates_}, {weights_of(call, sizes_.bias).ih, in}, {dx, in});
    }
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      device::gemm(gates_, in, rows, {made.dx, gates_, true}, {input(call), in}, {dw, in});
    }
    if (float* dw = call.parameter_gradients[1]; dw != nullptr) recurrent_gradient(call, made, dw);
    if (!sizes_.bias) return;
    if (float* db = call.parameter_gradients[2]; db != nullptr) sum_rows(made.dx, rows, gates_, db, made.scratch);
    if (float* db = call.parameter_gradients[3]; db != nullptr) sum_rows(made.dh, rows, gates_, db, made.scratch);
  }

 private:
  /// What the cells of a row remember of the step before; null at the first step.
  const float* before(const float* kept, const float* y, std::int64_t row, std::int64_t t) const {
    if (t == 0) return nullptr;
    return Cell::kRemembersOutput ? y + (row - 1) * sizes_.units
                                  : kept + (row - 1) * kept_ + Cell::kMemory * sizes_.units;
  }

  void go_back(const BackwardCall& call, const RecurrentGradients<Cell>& made) {
    const auto* kept = static_cast<const float*>(call.saved[0]);
    const auto* y = static_cast<const float*>(call.outputs[0]);
    std::fill_n(made.dy, sizes_.batch * sizes_.units, 0.0F);
    std::fill_n(made.carry, sizes_.batch * sizes_.units, 0.0F);
    for (std::int64_t t = sizes_.steps - 1; t >= 0; --t) {
      if (t + 1 < sizes_.steps) {
        recurrent_back_.multiply({made.dh + (t + 1) * gates_, sizes_.steps * gates_}, weights_of(call, sizes_.bias).hh,
                                 call.step->parameters_version, {made.dy, sizes_.units});
      }
      for (std::int64_t b = 0; b < sizes_.batch; ++b) {
        const std::int64_t row = b * sizes_.steps + t, step = b * sizes_.units;
        step_backward<Cell>(kept + row * kept_, before(kept, y, row, t), output_gradient(call) + row * sizes_.units,
                            made.dy + step, made.carry + step, made.dx + row * gates_, made.dh + row * gates_,
                            sizes_.units);
      }
    }
  }

  /// Adds sample after sample; the first step has no step before it.
  void recurrent_gradient(const BackwardCall& call, const RecurrentGradients<Cell>& made, float* dw) const {
    const std::int64_t units = sizes_.units, later = sizes_.steps - 1;
    if (sizes_.batch == 0 || later < 1) {
      std::fill_n(dw, gates_ * units, 0.0F);
      return;
    }
    const auto* y = static_cast<const float*>(call.outputs[0]);
    for (std::int64_t b = 0; b < sizes_.batch; ++b) {
      device::gemm(gates_, units, later, {made.dh + (b * sizes_.steps + 1) * gates_, gates_, true},
                   {y + b * sizes_.steps * units, units}, {dw, units, b > 0});
    }
  }

  RecurrentSizes sizes_;
  std::int64_t gates_, kept_;  ///< elements of a row
  bool training_;
  KeptWeight recurrent_, recurrent_back_;
};

}  // namespace

std::unique_ptr<Kernel> make_lstm_cpu(const KernelRequest& request) {
  return std::make_unique<RecurrentCpu<LstmCell>>(request);
}

std::unique_ptr<Kernel> make_gru_cpu(const KernelRequest& request) {
  return std::make_unique<RecurrentCpu<GruCell>>(request);
}

}  // namespace lockstep::ops
