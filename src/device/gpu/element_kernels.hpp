// A Gpu's own kernels (device/gpu/gpu.hpp), on a Grid, for every type of element.
#pragma once

#include "core/divisor.hpp"
#include "device/cast.hpp"
#include "device/gpu/elements.hpp"
#include "device/gpu/grid.hpp"

namespace lockstep::device {

/// to[i] = the value of T nearest to from[i]
template <class T>
struct RoundFunctor {
  const float* from;
  float* to;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    T rounded{};
    rounded = from[i];
    return rounded;
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { to[i] = value; }
};

/// Copies rows of `columns` elements to rows with gaps between them.
template <class T>
struct CopyRowsFunctor {
  const float* from;
  T* to;
  Divisor columns;
  std::int64_t gap;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return from[i]; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { to[i + i / columns * gap] = value; }
};

template <class Grid>
void launch_add(GpuStream* stream, DType dtype, const void* left, const void* right, void* out, std::int64_t n) {
  with_element(dtype, [&]<class T>(T /*element*/) {
    Grid::each(stream, n,
               AddFunctor<T>{static_cast<const T*>(left), static_cast<const T*>(right), static_cast<T*>(out)});
  });
}

template <class Grid>
void launch_cast(GpuStream* stream, Cast cast, DType type, const void* from, void* to, std::int64_t n) {
  const auto* floats = static_cast<const float*>(from);
  auto* to_floats = static_cast<float*>(to);
  with_low_precision(type, [&]<class T>(T /*element*/) {
    switch (cast) {
      case Cast::upcast:
        return Grid::each(stream, n, CopyFunctor<T, float>{static_cast<const T*>(from), to_floats});
      case Cast::downcast:
        return Grid::each(stream, n, CopyFunctor<float, T>{floats, static_cast<T*>(to)});
      case Cast::round:
        return Grid::each(stream, n, RoundFunctor<T>{floats, to_floats});
    }
  });
}

/// values[i] *= *factor
struct ScaleRowsFunctor {
  float* values;
  const float* factors;
  Divisor columns;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return values[i] * factors[i / columns]; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { values[i] = value; }
};

}  // namespace lockstep::device
