// The update of parameters over a Grid: what updater.cpp and optimizer.cpp do on the CPU, element for element.
#pragma once

#include <cstdint>

#include "backend/gpu/grid.hpp"
#include "train/optimizer_formulas.hpp"

namespace lockstep::train {

/// gradient[i] = sum[i] / count
struct DivideBody {
  const float* sum;
  float* gradient;
  float count;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { gradient[i] = sum[i] / count; }
};

/// values[i] *= factor: clipping.
struct ScaleBody {
  float* values;
  float factor;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { values[i] *= factor; }
};

/// A running statistic, from the shards' sum.
struct BlendBody {
  float* state;
  const float* sum;
  float momentum, shards;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    state[i] = (1.0F - momentum) * state[i] + momentum * (sum[i] / shards);
  }
};

struct SgdPlainBody {
  float* p;
  const float* g;
  SgdScalars scalars;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { sgd_plain(p[i], g[i], scalars); }
};

struct SgdMomentumBody {
  float* p;
  const float* g;
  float* m;
  SgdScalars scalars;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { sgd_momentum(p[i], g[i], m[i], scalars); }
};

struct AdamBody {
  float* p;
  const float* g;
  float *m, *v;
  AdamScalars scalars;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { adam(p[i], g[i], m[i], v[i], scalars); }
};

}  // namespace lockstep::train
