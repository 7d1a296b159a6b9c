#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult add_losses_reference(const ReferenceCall& call) {
  const double weights[] = {call.attributes.number("first"), call.attributes.number("second")};
  const std::size_t samples = call.inputs[0].values.size();
  DoubleTensor loss{call.inputs[0].shape, std::vector<double>(samples)}, count{loss.shape, loss.values};
  for (std::size_t i = 0; i < samples; ++i) {
    for (std::size_t term = 0; term < 2; ++term) {
      const double counted = call.inputs[2 * term + 1].values[i];
      if (counted > 0) loss.values[i] += weights[term] * call.inputs[2 * term].values[i] / counted;
    }
    count.values[i] = 1;
  }
  return {{loss, count}, {}};
}

/// Counts are whole numbers; of some samples nothing counts.
void fill_counts(int index, Tensor& tensor) {
  if (index % 2 == 0) return;
  int n = index;
  for (auto& value : tensor.as<float>()) value = n++ % 5;
}

}  // namespace

OpCases make_add_losses_cases() {
  return {"add_losses",
          add_losses_reference,
          {{.name = "odd", .attributes = {}, .inputs = several(4, {37}), .fill = fill_counts},
           {.name = "weights",
            .attributes = Attributes({{"first", 0.3}, {"second", 2.5}}),
            .inputs = several(4, {9}),
            .fill = fill_counts},
           {.name = "empty", .attributes = {}, .inputs = several(4, {0})},
           {.name = "speed", .attributes = {}, .inputs = several(4, {4096}), .benchmark = true, .fill = fill_counts}}};
}

}  // namespace lockstep::ops
