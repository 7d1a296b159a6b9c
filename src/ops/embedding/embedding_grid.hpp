// embedding on a Grid. The gradient of a row is the sum over its positions in order: these are linked first, then one
// thread per element of the weight follows its row's links, so no atomics are needed, and rows without a position get
// their zeros in the same pass. An id outside the vocabulary gives NaN, and the run ends as diverged, because a kernel
// cannot throw.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/elementwise_grid.hpp"
#include "ops/embedding/embedding_positions.hpp"

namespace lockstep::ops {

template <class T>
struct EmbeddingFunctor {
  const std::int32_t* ids;
  const float* weight;
  T* y;
  std::int64_t vocabulary, width;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t id = ids[i / width];
    y[i] = id >= 0 && id < vocabulary ? weight[id * width + i % width] : __builtin_nanf("");
  }
};

/// Linked lists of each id's positions: links[id] is the first one, links[vocabulary + position] the next. kNone: the
/// end.
struct PositionLinks {
  static constexpr std::int32_t kNone = -1;
  std::int32_t* links;  ///< [vocabulary + positions]
  std::int64_t vocabulary;

  LOCKSTEP_HOST_DEVICE void clear(std::int64_t i) const { links[i] = kNone; }
  /// `before`: kNone for the first one.
  LOCKSTEP_HOST_DEVICE void add(std::int64_t id, std::int64_t before, std::int64_t position) const {
    links[before == kNone ? id : vocabulary + before] = position;
  }
  LOCKSTEP_HOST_DEVICE std::int64_t first(std::int64_t id) const { return links[id]; }
  LOCKSTEP_HOST_DEVICE std::int64_t after(std::int64_t position) const { return links[vocabulary + position]; }
};

struct ClearLinksFunctor {
  PositionLinks links;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { links.clear(i); }
};

/// One group per position, which finds the last earlier position with the same id.
struct LinkPositionsFunctor {
  const std::int32_t* ids;
  PositionLinks links;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t position) const {
    const std::int32_t *all = ids, id = ids[position];
    if (id < 0 || id >= links.vocabulary) return;
    const float before = group.maximum(
        position, [=](std::int64_t i) { return all[i] == id ? static_cast<float>(i) : -__builtin_inff(); });
    const std::int64_t last = before < 0 ? PositionLinks::kNone : static_cast<std::int64_t>(before);
    const PositionLinks to = links;
    group.once([=] { to.add(id, last, position); });
  }
};

template <class T>
struct EmbeddingGradientFunctor {
  const T* dy;
  PositionLinks links;
  float* dw;
  std::int64_t width;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t id = i / width, column = i % width;
    float sum = 0;
    for (std::int64_t at = links.first(id); at != PositionLinks::kNone; at = links.after(at)) {
      sum += dy[at * width + column];
    }
    dw[i] = sum;
  }
};

template <class Grid, class T>
class EmbeddingGrid final : public Kernel {
 public:
  EmbeddingGrid(std::int64_t positions, std::int64_t vocabulary, std::int64_t width)
      : positions_(positions), vocabulary_(vocabulary), width_(width) {
    require_gpu_positions(positions);
  }

  std::size_t workspace_bytes() const override { return (vocabulary_ + positions_) * sizeof(std::int32_t); }

  void forward(const ForwardCall& call) override {
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    Grid::each(stream_of(call), positions_ * width_,
               EmbeddingFunctor<T>{ids(call), weight, output<T>(call), vocabulary_, width_});
  }

  void backward(const BackwardCall& call) override {
    float* dw = call.parameter_gradients[0];
    if (dw == nullptr) return;
    const PositionLinks links{static_cast<std::int32_t*>(call.workspace), vocabulary_};
    Grid::each(stream_of(call), vocabulary_ + positions_, ClearLinksFunctor{links});
    Grid::rows(stream_of(call), positions_, LinkPositionsFunctor{ids(call), links});
    Grid::each(stream_of(call), vocabulary_ * width_,
               EmbeddingGradientFunctor<T>{output_gradient<T>(call), links, dw, width_});
  }

 private:
  template <class Call>
  static const std::int32_t* ids(const Call& call) {
    return static_cast<const std::int32_t*>(call.inputs[0]);
  }
  std::int64_t positions_, vocabulary_, width_;
};

template <class Grid>
std::unique_ptr<Kernel> make_embedding_grid(const KernelRequest& request) {
  const Shape& weight = request.parameters[0].shape;
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<EmbeddingGrid<Grid, T>>(request.inputs[0].elements(), weight[0], weight[1]);
  });
}

}  // namespace lockstep::ops
