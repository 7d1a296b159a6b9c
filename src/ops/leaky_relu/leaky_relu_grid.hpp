// leaky_relu and elu on a Grid.
#pragma once

#include <memory>

#include "ops/elementwise_grid.hpp"
#include "ops/leaky_relu/leaky_relu.hpp"

namespace lockstep::ops {

template <class Formula, class T>
struct SettingActivationFunctor {
  Formula formula;
  const T* x;
  T* y;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return formula.of(float{x[i]}); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

/// dx may be seen or dy.
template <class Formula, class T>
struct SettingActivationGradientFunctor {
  Formula formula;
  const T *seen, *dy;
  T* dx;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return formula.gradient(float{seen[i]}, float{dy[i]}); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { dx[i] = value; }
};

template <class Grid, class Formula, class T>
class SettingActivationGrid final : public Kernel {
 public:
  explicit SettingActivationGrid(const KernelRequest& request)
      : formula_(*request.attributes), n_(request.outputs[0].elements()) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), n_, SettingActivationFunctor<Formula, T>{formula_, input<T>(call), output<T>(call)});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const T* seen = Formula::kReadsOutput ? static_cast<const T*>(call.outputs[0]) : input<T>(call);
    Grid::each(stream_of(call), n_,
               SettingActivationGradientFunctor<Formula, T>{formula_, seen, output_gradient<T>(call),
                                                            input_gradient<T>(call)});
  }

 private:
  Formula formula_;
  std::int64_t n_;
};

template <class Grid, class Formula>
std::unique_ptr<Kernel> make_setting_activation(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<SettingActivationGrid<Grid, Formula, T>>(request);
  });
}

template <class Grid>
std::unique_ptr<Kernel> make_leaky_relu_grid(const KernelRequest& request) {
  return make_setting_activation<Grid, LeakyRelu>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_elu_grid(const KernelRequest& request) {
  return make_setting_activation<Grid, Elu>(request);
}

}  // namespace lockstep::ops
