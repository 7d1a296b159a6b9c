// concat on a Grid, one thread per element of each input. Every tensor consists of `outer` runs; a run of the output is
// the inputs' runs, one after another.
#pragma once

#include <memory>
#include <vector>

#include "core/divisor.hpp"
#include "device/gpu/grid.hpp"
#include "ops/concat/concat_runs.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/gather_grid.hpp"

namespace lockstep::ops {

/// Where an input's elements are in the output.
struct RunOffset {
  Divisor run;                ///< elements in a run of the input
  std::int64_t total, first;  ///< elements in a run of the output, and those before this input's
  LOCKSTEP_HOST_DEVICE std::int64_t of(std::int64_t i) const { return i / run * total + first + i % run; }
};

template <class Grid, class T>
class ConcatGrid final : public Kernel {
 public:
  explicit ConcatGrid(const ConcatRuns& runs) : outer_(runs.outer) {
    std::int64_t total = 0;
    for (const auto run : runs.runs) total += run;
    std::int64_t first = 0;
    for (const auto run : runs.runs) {
      offsets_.push_back({Divisor(run), total, first});
      first += run;
    }
  }

  void forward(const ForwardCall& call) override {
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      Grid::each(stream_of(call), outer_ * offsets_[i].run.value(),
                 ScatterFunctor<RunOffset, T>{input<T>(call, i), output<T>(call), offsets_[i]});
    }
  }
  void backward(const BackwardCall& call) override {
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      T* dx = input_gradient<T>(call, i);
      if (dx == nullptr) continue;
      Grid::each(stream_of(call), outer_ * offsets_[i].run.value(),
                 GatherFunctor<RunOffset, T>{output_gradient<T>(call), dx, offsets_[i]});
    }
  }

 private:
  std::int64_t outer_;
  std::vector<RunOffset> offsets_;
};

template <class Grid>
std::unique_ptr<Kernel> make_concat_grid(const KernelRequest& request) {
  return make_for_elements(
      request, [&]<class T>(T /*element*/) { return std::make_unique<ConcatGrid<Grid, T>>(concat_runs(request)); });
}

}  // namespace lockstep::ops
