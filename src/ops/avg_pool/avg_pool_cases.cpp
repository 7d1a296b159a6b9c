#include <algorithm>
#include <numeric>

#include "ops/pool_reference.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult avg_pool_reference(const ReferenceCall& call) {
  const PoolShape shape = pool_shape("avg_pool", call.attributes, {DType::f32, call.inputs[0].shape});
  const bool count_padding = call.attributes.boolean("count_include_pad");
  return pool_reference(shape, call.inputs[0], [=](const std::vector<double>& covered, std::int64_t outside) {
    const double sum = std::accumulate(covered.begin(), covered.end(), 0.0);
    return sum / (covered.size() + (count_padding ? static_cast<double>(outside) : 0));
  });
}

}  // namespace

OpCases make_avg_pool_cases() {
  OpCases cases{"avg_pool", avg_pool_reference, pool_cases()};
  for (const char* const padded : {"overlap", "many_windows_of_a_pixel"}) {
    OpCase without_padding = *std::ranges::find(cases.cases, padded, &OpCase::name);
    without_padding.name += "_padding_not_counted";
    without_padding.attributes.set("count_include_pad", false);
    cases.cases.push_back(without_padding);
  }
  return cases;
}

}  // namespace lockstep::ops
