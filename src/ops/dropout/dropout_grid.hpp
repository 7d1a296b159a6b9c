// dropout on a Grid: each element draws its own word, by the rule of dropout_mask.hpp.
#pragma once

#include <memory>
#include <string_view>

#include "device/gpu/grid.hpp"
#include "lockstep/error.hpp"
#include "ops/dropout/dropout_mask.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

template <class T>
struct DropoutFunctor {
  const T* x;
  T* y;
  const StepContext* step;
  std::uint64_t layer;
  std::int64_t size;  ///< elements per sample
  std::uint32_t threshold;
  float scale;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::uint64_t position = step->first_position + i / size;
    const std::uint32_t word = dropout_word(dropout_key(*step, layer), position, i % size);
    y[i] = word >= threshold ? x[i] * scale : 0.0F;
  }
};

template <class Grid, class T>
class DropoutGrid final : public Kernel {
 public:
  DropoutGrid(std::string_view node, double rate, const TensorSpec& spec, Mode mode)
      : layer_(hash_name(node)),
        batch_(spec.shape[0]),
        size_(batch_ == 0 ? 0 : spec.elements() / batch_),
        active_(mode == Mode::training && rate > 0),
        threshold_(dropout_threshold(rate)),
        scale_(1 / (1 - rate)) {}

  void forward(const ForwardCall& call) override { apply(stream_of(call), call.step, input<T>(call), output<T>(call)); }
  void backward(const BackwardCall& call) override {
    T* dx = input_gradient<T>(call);
    if (dx != nullptr) apply(stream_of(call), call.step, output_gradient<T>(call), dx);
  }

 private:
  void apply(GpuStream* stream, const StepContext* step, const T* x, T* y) const {
    if (!active_) return Grid::each(stream, batch_ * size_, device::CopyFunctor<T>{x, y});
    LOCKSTEP_CHECK(step != nullptr, "dropout needs the step");
    Grid::each(stream, batch_ * size_, DropoutFunctor<T>{x, y, step, layer_, size_, threshold_, scale_});
  }

  std::uint64_t layer_;
  std::int64_t batch_, size_;
  bool active_;
  std::uint32_t threshold_;
  float scale_;
};

template <class Grid>
std::unique_ptr<Kernel> make_dropout_grid(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<DropoutGrid<Grid, T>>(request.node, request.attributes->number("rate"), request.inputs[0],
                                                  request.mode);
  });
}

}  // namespace lockstep::ops
