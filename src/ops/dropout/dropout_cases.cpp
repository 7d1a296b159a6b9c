// The driver gives a node its op's name.
#include "ops/dropout/dropout_mask.hpp"
#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult dropout_reference(const ReferenceCall& call) {
  DoubleTensor y = call.inputs[0];
  const double rate = call.attributes.number("rate");
  if (call.mode == Mode::inference || y.values.empty()) return {{y}, {}};
  const std::uint64_t key = dropout_key(call.step, hash_name("dropout"));
  const std::size_t size = y.values.size() / y.shape[0];
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const std::uint64_t position = call.step.first_position + i / size;
    const bool kept = dropout_word(key, position, i % size) >= dropout_threshold(rate);
    y.values[i] = kept ? y.values[i] / (1 - rate) : 0;
  }
  return {{y}, {}};
}

Attributes rate(double value) {
  return Attributes({{"rate", value}});
}

}  // namespace

OpCases make_dropout_cases() {
  return {"dropout",
          dropout_reference,
          {
              {.name = "odd", .attributes = rate(0.3), .inputs = {{DType::f32, {3, 77}}}},
              {.name = "image", .attributes = rate(0.5), .inputs = {{DType::f32, {2, 5, 9, 4}}}},
              {.name = "none", .attributes = rate(0), .inputs = {{DType::f32, {2, 65}}}},
              {.name = "inference", .attributes = rate(0.5), .inputs = {{DType::f32, {3, 7}}}, .mode = Mode::inference},
              {.name = "empty", .attributes = rate(0.5), .inputs = {{DType::f32, {0, 7}}}},
              {.name = "speed", .attributes = rate(0.1), .inputs = {{DType::f32, {1, 64, 512}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
