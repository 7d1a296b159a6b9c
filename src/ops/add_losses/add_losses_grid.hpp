// add_losses on a Grid, element by element.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/add_losses/add_losses.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

struct AddLossesFunctor {
  LossTerm first, second;
  float *loss, *count;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return first.value(i) + second.value(i); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const {
    loss[i] = value;
    count[i] = 1;
  }
};

struct AddLossesGradientFunctor {
  LossTerm term;
  const float* dy;  ///< null: 1
  float* to;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return term.gradient(i, dy == nullptr ? 1.0F : dy[i]); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { to[i] = value; }
};

template <class Grid>
class AddLossesGrid final : public Kernel {
 public:
  explicit AddLossesGrid(const KernelRequest& request) : terms_(request) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), terms_.samples,
               AddLossesFunctor{terms_.of(call, 0), terms_.of(call, 1), output(call, 0), output(call, 1)});
  }
  void backward(const BackwardCall& call) override {
    const float* const dy = call.output_gradients.empty() ? nullptr : output_gradient(call);
    for (const std::size_t term : {std::size_t{0}, std::size_t{1}}) {
      float* const to = input_gradient(call, 2 * term);
      if (to == nullptr) continue;
      Grid::each(stream_of(call), terms_.samples, AddLossesGradientFunctor{terms_.of(call, term), dy, to});
    }
  }

 private:
  LossTerms terms_;
};

template <class Grid>
std::unique_ptr<Kernel> make_add_losses_grid(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<AddLossesGrid<Grid>>(request); });
}

}  // namespace lockstep::ops
