// triplet on a Grid, a group a sample.
#pragma once

#include <cmath>
#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/triplet/triplet.hpp"

namespace lockstep::ops {

struct TripletFunctor {
  const float* x;
  float *loss, *count, *inverse;  ///< inverse: null in inference
  std::int64_t size;
  float margin;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const std::int64_t d = size;
    const float* from = x + i * 3 * d;
    const float near = group.sum(d, [=](std::int64_t k) { return (from[k] - from[d + k]) * (from[k] - from[d + k]); });
    const float far =
        group.sum(d, [=](std::int64_t k) { return (from[k] - from[2 * d + k]) * (from[k] - from[2 * d + k]); });
    const float positive = std::sqrt(near + kSmallestDistance), negative = std::sqrt(far + kSmallestDistance);
    const float lost = positive - negative + margin;
    float *loss_to = loss + i, *count_to = count + i, *inverse_to = inverse == nullptr ? nullptr : inverse + 2 * i;
    group.once([=] {
      *loss_to = lost <= 0 ? 0 : lost;
      *count_to = 1;
      if (inverse_to == nullptr) return;
      inverse_to[0] = lost <= 0 ? 0 : 1.0F / positive;
      inverse_to[1] = lost <= 0 ? 0 : 1.0F / negative;
    });
  }
};

struct TripletGradientFunctor {
  const float *x, *inverse;
  float* dx;
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const std::int64_t d = size;
    const float* from = x + i * 3 * d;
    float* to = dx + i * 3 * d;
    const float by_positive = inverse[2 * i], by_negative = inverse[2 * i + 1];
    group.each(d, [=](std::int64_t k) {
      const float of_positive = (from[k] - from[d + k]) * by_positive;
      const float of_negative = (from[k] - from[2 * d + k]) * by_negative;
      to[k] = of_positive - of_negative;
      to[d + k] = -of_positive;
      to[2 * d + k] = of_negative;
    });
  }
};

template <class Grid>
class TripletGrid final : public Kernel {
 public:
  explicit TripletGrid(const KernelRequest& request) : sizes_(request) {}

  void forward(const ForwardCall& call) override {
    auto* const inverse = call.saved.empty() ? nullptr : static_cast<float*>(call.saved[0]);
    Grid::rows(stream_of(call), sizes_.samples,
               TripletFunctor{input(call), output(call, 0), output(call, 1), inverse, sizes_.size, sizes_.margin});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    Grid::rows(stream_of(call), sizes_.samples,
               TripletGradientFunctor{input(call), static_cast<const float*>(call.saved[0]), input_gradient(call),
                                      sizes_.size});
  }

 private:
  TripletSizes sizes_;
};

template <class Grid>
std::unique_ptr<Kernel> make_triplet_grid(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<TripletGrid<Grid>>(request); });
}

}  // namespace lockstep::ops
