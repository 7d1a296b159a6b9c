// gelu over a Grid. As on the CPU, training makes the slope in forward, and backward only multiplies by it.
#pragma once

#include "ops/elementwise_grid.hpp"
#include "ops/gelu/gelu_formulas.hpp"

namespace lockstep::ops {

template <class Phi>
struct GeluForward {
  static LOCKSTEP_HOST_DEVICE float of(float x) { return x * Phi::phi(x); }
};

template <class Phi>
struct GeluTraining {
  const float* x;
  float *y, *slope;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const float phi = Phi::phi(x[i]);
    slope[i] = Phi::slope(x[i], phi);
    y[i] = x[i] * phi;
  }
};

template <class Grid, class Phi>
class GeluGrid final : public Kernel {
 public:
  GeluGrid(std::int64_t n, bool training) : n_(n), training_(training) {}

  void forward(const ForwardCall& call) override {
    if (training_) {
      Grid::each(call.queue, n_, GeluTraining<Phi>{input(call), output(call), static_cast<float*>(call.saved[0])});
    } else {
      Grid::each(call.queue, n_, MapBody<GeluForward<Phi>>{input(call), output(call)});
    }
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const auto* slope = static_cast<const float*>(call.saved[0]);
    Grid::each(call.queue, n_, MapPairBody<Product>{output_gradient(call), slope, input_gradient(call)});
  }

 private:
  std::int64_t n_;
  bool training_;
};

template <class Grid>
std::unique_ptr<Kernel> make_gelu_grid(const KernelRequest& request) {
  const std::int64_t n = request.outputs[0].elements();
  const bool training = request.mode == Mode::training;
  if (request.attributes->text("approximate") == "none") {
    return std::make_unique<GeluGrid<Grid, GeluExact>>(n, training);
  }
  return std::make_unique<GeluGrid<Grid, GeluTanh>>(n, training);
}

}  // namespace lockstep::ops
