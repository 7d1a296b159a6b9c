// softmax on a Grid, one group per row. dx = y * (dy - sum(y * dy)).
#pragma once

#include <memory>

#include "device/float_math.hpp"
#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

template <class T>
struct SoftmaxFunctor {
  const T* x;
  T* y;
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const T* xr = x + row * size;
    T* yr = y + row * size;
    const float largest = group.maximum(size, [=](std::int64_t i) { return xr[i]; });
    const auto exponential = [=](std::int64_t i) { return device::vector_exp(xr[i] - largest); };
    const float scale = 1.0F / group.sum(size, exponential);
    group.each(size, [=](std::int64_t i) { yr[i] = exponential(i) * scale; });
  }
};

template <class T>
struct SoftmaxGradientFunctor {
  const T *y, *dy;
  T* dx;
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const T *yr = y + row * size, *dyr = dy + row * size;
    T* dxr = dx + row * size;
    const float mean = group.sum(size, [=](std::int64_t i) { return yr[i] * dyr[i]; });
    group.each(size, [=](std::int64_t i) { dxr[i] = yr[i] * (dyr[i] - mean); });
  }
};

template <class Grid, class T>
class SoftmaxGrid final : public Kernel {
 public:
  explicit SoftmaxGrid(Rows rows) : rows_(rows) {}
  void forward(const ForwardCall& call) override {
    Grid::rows(stream_of(call), rows_.count, SoftmaxFunctor<T>{input<T>(call), output<T>(call), rows_.size});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const auto* y = static_cast<const T*>(call.outputs[0]);
    Grid::rows(stream_of(call), rows_.count,
               SoftmaxGradientFunctor<T>{y, output_gradient<T>(call), input_gradient<T>(call), rows_.size});
  }

 private:
  Rows rows_;
};

template <class Grid>
std::unique_ptr<Kernel> make_softmax_grid(const KernelRequest& request) {
  return make_for_elements(
      request, [&]<class T>(T /*element*/) { return std::make_unique<SoftmaxGrid<Grid, T>>(Rows(request.inputs[0])); });
}

}  // namespace lockstep::ops
