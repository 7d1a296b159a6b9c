// What cuDNN's convolution leaves to us where a weight lies as the model has it, over a Grid: into channels last, and
// back.
#pragma once

#include "core/filter_sizes.hpp"
#include "ops/gather_grid.hpp"

namespace lockstep::ops {

/// weight -> packed, and packed -> weight.
template <class T>
using ChannelsLastFunctor = GatherFunctor<FilterSizes, T>;
using ChannelsFirstFunctor = ScatterFunctor<FilterSizes, float>;

}  // namespace lockstep::ops
