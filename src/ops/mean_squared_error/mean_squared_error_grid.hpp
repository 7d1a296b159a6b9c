// mean_squared_error on a Grid, one group per sample. The gradient is 2 * (x - t).
#pragma once

#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

struct SquaredErrorFunctor {
  const float *x, *t;
  float *loss, *count;
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t sample) const {
    const float *xs = x + sample * size, *ts = t + sample * size;
    const float total = group.sum(size, [=](std::int64_t i) { return (xs[i] - ts[i]) * (xs[i] - ts[i]); });
    float *loss_to = loss + sample, *count_to = count + sample;
    const auto counted = static_cast<float>(size);
    group.once([=] {
      *loss_to = total;
      *count_to = counted;
    });
  }
};

struct SquaredErrorGradient {
  static LOCKSTEP_HOST_DEVICE float of(float x, float t) { return 2.0F * (x - t); }
};

template <class Grid>
class MeanSquaredErrorGrid final : public Kernel {
 public:
  MeanSquaredErrorGrid(std::int64_t batch, std::int64_t size) : batch_(batch), size_(size) {}

  void forward(const ForwardCall& call) override {
    Grid::rows(stream_of(call), batch_,
               SquaredErrorFunctor{input(call, 0), input(call, 1), output(call, 0), output(call, 1), size_});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    Grid::each(stream_of(call), batch_ * size_,
               MapPairFunctor<SquaredErrorGradient, float>{input(call, 0), input(call, 1), input_gradient(call)});
  }

 private:
  std::int64_t batch_, size_;
};

template <class Grid>
std::unique_ptr<Kernel> make_mean_squared_error_grid(const KernelRequest& request) {
  const std::int64_t batch = request.inputs[0].shape[0];
  return make_for_float32(request, [&] {
    return std::make_unique<MeanSquaredErrorGrid<Grid>>(batch, batch == 0 ? 0 : request.inputs[0].elements() / batch);
  });
}

}  // namespace lockstep::ops
