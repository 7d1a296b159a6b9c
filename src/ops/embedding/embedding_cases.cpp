#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult embedding_reference(const ReferenceCall& call) {
  const std::size_t width = call.attributes.integer("width");
  DoubleTensor y{call.inputs[0].shape, {}};
  y.shape.push_back(call.attributes.integer("width"));
  for (const double id : call.inputs[0].values) {
    for (std::size_t i = 0; i < width; ++i) {
      y.values.push_back(call.parameters[0].values[static_cast<std::size_t>(id) * width + i]);
    }
  }
  return {{y}, {}};
}

Attributes of(std::int64_t vocabulary, std::int64_t width) {
  return Attributes({{"vocabulary", vocabulary}, {"width", width}});
}

}  // namespace

OpCases make_embedding_cases() {
  return {"embedding",
          embedding_reference,
          {
              {.name = "repeated_ids",
               .attributes = of(3, 5),
               .inputs = {{DType::i32, {2, 9}}},
               .integer_bound = 3,
               .tolerance = 0},
              {.name = "many_repeats",
               .attributes = of(7, 37),
               .inputs = {{DType::i32, {3, 67}}},
               .integer_bound = 6,  // the last id never occurs
               .tolerance = 0},
              {.name = "one_per_sample",
               .attributes = of(11, 17),
               .inputs = {{DType::i32, {7}}},
               .integer_bound = 11,
               .tolerance = 0},
              {.name = "empty", .attributes = of(3, 5), .inputs = {{DType::i32, {0, 9}}}, .integer_bound = 3},
              {.name = "speed_gpt",
               .attributes = of(65, 128),
               .inputs = {{DType::i32, {1, 64}}},
               .integer_bound = 65,
               .benchmark = true},
          }};
}

}  // namespace lockstep::ops
