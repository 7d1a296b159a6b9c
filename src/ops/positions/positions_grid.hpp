// last, reverse and mask on a Grid, a thread an element of what is made.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/positions/moved_rows.hpp"

namespace lockstep::ops {

template <class T>
struct PositionsFunctor {
  const T* from;
  T* to;
  MovedRows rows;
  Lengths lengths;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    const std::int64_t row = i / rows.width, sample = row / rows.to;
    const std::int64_t source = rows.source(row % rows.to, lengths.of(sample));
    return source < 0 ? 0.0F : float{from[(sample * rows.from + source) * rows.width + i % rows.width]};
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { to[i] = value; }
};

template <class Grid, class T>
class PositionsGrid final : public Kernel {
 public:
  PositionsGrid(const KernelRequest& request, PositionMove move)
      : forward_(moved_rows(request, move, false)), backward_(moved_rows(request, move, true)) {}

  void forward(const ForwardCall& call) override {
    const Lengths lengths = lengths_of(call, 1, forward_.from);
    Grid::each(stream_of(call), forward_.elements(),
               PositionsFunctor<T>{input<T>(call), output<T>(call), forward_, lengths});
    if (lengths.data == nullptr || call.saved.empty()) return;
    Grid::each(stream_of(call), forward_.samples,
               KeepLengthsFunctor{lengths.data, static_cast<std::int32_t*>(call.saved[0])});
  }
  void backward(const BackwardCall& call) override {
    const auto* kept = call.saved.empty() ? nullptr : static_cast<const std::int32_t*>(call.saved[0]);
    Grid::each(
        stream_of(call), backward_.elements(),
        PositionsFunctor<T>{output_gradient<T>(call), input_gradient<T>(call), backward_, {kept, forward_.from}});
  }

 private:
  MovedRows forward_, backward_;
};

template <class Grid>
std::unique_ptr<Kernel> make_positions_of(const KernelRequest& request, PositionMove move) {
  return make_for_elements(
      request, [&]<class T>(T /*element*/) { return std::make_unique<PositionsGrid<Grid, T>>(request, move); });
}

template <class Grid>
std::unique_ptr<Kernel> make_last_grid(const KernelRequest& request) {
  return make_positions_of<Grid>(request, PositionMove::last);
}
template <class Grid>
std::unique_ptr<Kernel> make_reverse_grid(const KernelRequest& request) {
  return make_positions_of<Grid>(request, PositionMove::reverse);
}
template <class Grid>
std::unique_ptr<Kernel> make_mask_grid(const KernelRequest& request) {
  return make_positions_of<Grid>(request, PositionMove::mask);
}

}  // namespace lockstep::ops
