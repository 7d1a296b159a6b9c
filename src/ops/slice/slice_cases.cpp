#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult slice_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  const std::int64_t rank = x.shape.size();
  const std::int64_t given = call.attributes.integer("axis");
  const std::size_t axis = given < 0 ? given + rank : given;
  const std::int64_t size = x.shape[axis];
  const auto place = [size](std::int64_t number) { return number < 0 ? number + size : number; };
  const std::int64_t begin = place(call.attributes.integer("begin"));
  const std::int64_t end = call.attributes.has("end") ? place(call.attributes.integer("end")) : size;
  std::int64_t inner = 1;
  for (std::size_t d = axis + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
  DoubleTensor y{x.shape, {}};
  y.shape[axis] = end - begin;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) / inner % size;
    if (at >= begin && at < end) y.values.push_back(x.values[i]);
  }
  return {{y}, {}};
}

Attributes part(std::int64_t axis, std::int64_t begin, std::int64_t end) {
  return Attributes({{"axis", axis}, {"begin", begin}, {"end", end}});
}

}  // namespace

OpCases make_slice_cases() {
  return {"slice",
          slice_reference,
          {
              {.name = "last", .attributes = part(-1, 2, 5), .inputs = {{DType::f32, {3, 7}}}},
              {.name = "rows", .attributes = part(1, 1, -1), .inputs = {{DType::f32, {2, 5, 3, 4}}}},
              {.name = "middle", .attributes = part(2, -2, 3), .inputs = {{DType::f32, {2, 5, 3, 4}}}},
              {.name = "to_the_end",
               .attributes = Attributes({{"begin", std::int64_t{-3}}}),
               .inputs = {{DType::f32, {4, 9}}}},
              {.name = "everything", .attributes = {}, .inputs = {{DType::f32, {4, 9}}}},
              {.name = "empty", .attributes = part(1, 0, 2), .inputs = {{DType::f32, {0, 7}}}},
              {.name = "speed",
               .attributes = part(-1, 128, 256),
               .inputs = {{DType::f32, {1, 64, 384}}},
               .benchmark = true},
          }};
}

}  // namespace lockstep::ops
