#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// [b, T, ...]: what stands at position t of a sample of this length; -1: 0.
using Source = std::int64_t (*)(std::int64_t t, std::int64_t length);

ReferenceResult moved(const ReferenceCall& call, bool one, Source source) {
  const DoubleTensor& x = call.inputs[0];
  const std::int64_t batch = x.shape[0], time = x.shape[1];
  std::int64_t width = 1;
  for (std::size_t i = 2; i < x.shape.size(); ++i) width *= x.shape[i];
  DoubleTensor y{x.shape, {}};
  if (one) y.shape.erase(y.shape.begin() + 1);
  for (std::int64_t b = 0; b < batch; ++b) {
    const double given = call.inputs.size() > 1 ? call.inputs[1].values[b] : 0;
    const std::int64_t length = call.inputs.size() > 1 ? static_cast<std::int64_t>(given) : time;
    for (std::int64_t t = 0; t < (one ? 1 : time); ++t) {
      const std::int64_t from = source(t, length);
      for (std::int64_t i = 0; i < width; ++i) {
        y.values.push_back(from < 0 ? 0 : x.values[(b * time + from) * width + i]);
      }
    }
  }
  return {{y}, {}};
}

OpCases cases_of(const std::string& op, const std::function<ReferenceResult(const ReferenceCall&)>& reference) {
  std::vector<OpCase> cases = {
      {.name = "all", .inputs = {{DType::f32, {2, 5, 3}}}},
      {.name = "empty", .inputs = {{DType::f32, {0, 5, 3}}, {DType::i32, {0}}}, .integer_bound = 1},
      with_lengths("lengths", {}, {{DType::f32, {3, 5, 7}}}, {5, 1, 3}),
      with_lengths("of_one_number", {}, {{DType::f32, {4, 6}}}, {2, 6, 1, 5}),
      with_lengths("wide", {}, {{DType::f32, {2, 3, 4, 5}}}, {2, 3}),
      with_lengths("inference", {}, {{DType::f32, {3, 5, 7}}}, {4, 5, 2}),
  };
  cases.back().mode = Mode::inference;
  return {op, reference, cases};
}

}  // namespace

OpCases make_last_cases() {
  return cases_of("last", [](const ReferenceCall& call) {
    return moved(call, true, [](std::int64_t, std::int64_t length) { return length - 1; });
  });
}

OpCases make_reverse_cases() {
  return cases_of("reverse", [](const ReferenceCall& call) {
    return moved(call, false, [](std::int64_t t, std::int64_t length) { return t < length ? length - 1 - t : t; });
  });
}

OpCases make_mask_cases() {
  return cases_of("mask", [](const ReferenceCall& call) {
    return moved(call, false, [](std::int64_t t, std::int64_t length) { return t < length ? t : std::int64_t{-1}; });
  });
}

}  // namespace lockstep::ops
