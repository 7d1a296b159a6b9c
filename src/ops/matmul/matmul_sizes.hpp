// matmul's sizes.
#pragma once

#include "lockstep/op.hpp"

namespace lockstep::ops {

/// For each of `count` pairs: y [m, n] = a [m, k] * b [k, n]; if `transposed`, b is [n, k] in memory.
struct MatmulSizes {
  MatmulSizes(const Attributes& attributes, std::span<const TensorSpec> inputs)
      : transposed(attributes.boolean("transpose")) {
    const Shape &a = inputs[0].shape, &b = inputs[1].shape;
    k = a[a.size() - 1];
    m = a[a.size() - 2];
    n = b[b.size() - (transposed ? 2 : 1)];
    for (std::size_t d = 0; d + 2 < a.size(); ++d) count *= a[d];
  }
  std::int64_t b_columns() const { return transposed ? k : n; }

  std::int64_t count = 1, m = 0, k = 0, n = 0;
  bool transposed;
};

}  // namespace lockstep::ops
