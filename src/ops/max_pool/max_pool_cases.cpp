#include <algorithm>

#include "ops/pool_reference.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult max_pool_reference(const ReferenceCall& call) {
  const PoolShape shape = pool_shape("max_pool", call.attributes, {DType::f32, call.inputs[0].shape});
  return pool_reference(shape, call.inputs[0], [](const std::vector<double>& covered, std::int64_t /*outside*/) {
    return *std::max_element(covered.begin(), covered.end());
  });
}

}  // namespace

OpCases make_max_pool_cases() {
  return {"max_pool", max_pool_reference, pool_cases()};
}

}  // namespace lockstep::ops
