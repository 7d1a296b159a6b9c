// softmax over a Grid, a group a row. dx = y * (dy - sum(y * dy)).
#pragma once

#include <memory>

#include "backend/float_math.hpp"
#include "backend/gpu/grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

struct SoftmaxBody {
  const float* x;
  float* y;
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const float* xr = x + row * size;
    float* yr = y + row * size;
    const float largest = group.maximum(size, [=](std::int64_t i) { return xr[i]; });
    const float total = group.sum(size, [=](std::int64_t i) { return yr[i] = backend::vector_exp(xr[i] - largest); });
    const float scale = 1.0F / total;
    group.each(size, [=](std::int64_t i) { yr[i] *= scale; });
  }
};

struct SoftmaxGradientBody {
  const float *y, *dy;
  float* dx;
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const float *yr = y + row * size, *dyr = dy + row * size;
    float* dxr = dx + row * size;
    const float mean = group.sum(size, [=](std::int64_t i) { return yr[i] * dyr[i]; });
    group.each(size, [=](std::int64_t i) { dxr[i] = yr[i] * (dyr[i] - mean); });
  }
};

template <class Grid>
class SoftmaxGrid final : public Kernel {
 public:
  explicit SoftmaxGrid(Rows rows) : rows_(rows) {}
  void forward(const ForwardCall& call) override {
    Grid::rows(call.queue, rows_.count, SoftmaxBody{input(call), output(call), rows_.size});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const auto* y = static_cast<const float*>(call.outputs[0]);
    Grid::rows(call.queue, rows_.count,
               SoftmaxGradientBody{y, output_gradient(call), input_gradient(call), rows_.size});
  }

 private:
  Rows rows_;
};

template <class Grid>
std::unique_ptr<Kernel> make_softmax_grid(const KernelRequest& request) {
  return std::make_unique<SoftmaxGrid<Grid>>(Rows(request.inputs[0]));
}

}  // namespace lockstep::ops
