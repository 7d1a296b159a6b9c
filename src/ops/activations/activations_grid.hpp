// Kernels of the activations in the table, on a Grid.
#pragma once

#include "ops/activations/activations.hpp"
#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

/// For MapPairFunctor; `Formula` is a struct in the table.
template <class Formula>
struct ActivationGradientOf {
  Formula formula = {};
  LOCKSTEP_HOST_DEVICE float of(float seen, float dy) const { return formula.gradient(seen, dy); }
};

template <class Grid, class Formula, class T>
class ActivationGrid final : public Kernel {
 public:
  explicit ActivationGrid(const KernelRequest& request)
      : formula_(formula_of<Formula>(*request.attributes)), n_(request.outputs[0].elements()) {}
  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), n_, MapFunctor<Formula, T>{input<T>(call), output<T>(call), formula_});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const T* seen = Formula::kReadsOutput ? static_cast<const T*>(call.outputs[0]) : input<T>(call);
    Grid::each(stream_of(call), n_,
               MapPairFunctor<ActivationGradientOf<Formula>, T>{
                   seen, output_gradient<T>(call), input_gradient<T>(call), {formula_}});
  }

 private:
  Formula formula_;
  std::int64_t n_;
};

template <class Grid, class Formula>
std::unique_ptr<Kernel> make_grid_of(const KernelRequest& request) {
  return make_for_elements(
      request, [&]<class T>(T /*element*/) { return std::make_unique<ActivationGrid<Grid, Formula, T>>(request); });
}

#define LOCKSTEP_MAKE_GRID(Formula, op)                                    \
  template <class Grid>                                                    \
  std::unique_ptr<Kernel> make_##op##_grid(const KernelRequest& request) { \
    return make_grid_of<Grid, Formula>(request);                           \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_MAKE_GRID)
#undef LOCKSTEP_MAKE_GRID

}  // namespace lockstep::ops
