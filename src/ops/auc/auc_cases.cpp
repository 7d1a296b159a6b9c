// What a sample leaves: scores and whether they are of positives. tests/train/evaluation_test.cpp has areas.
#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult auc_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &t = call.inputs[1];
  const std::size_t batch = x.shape[0], labels = batch == 0 ? 0 : x.values.size() / batch;
  std::int64_t width = 2;
  for (std::size_t d = 1; d < x.shape.size(); ++d) width *= x.shape[d];
  DoubleTensor pairs{{x.shape[0], width}, {}}, count{{x.shape[0]}, std::vector<double>(batch, labels)};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    pairs.values.push_back(x.values[i]);
    pairs.values.push_back(t.values[i] > 0.5 ? 1 : 0);
  }
  return {{pairs, count}, {}};
}

OpCase auc_case(const std::string& name, Shape prediction, Shape target, DType of_target = DType::f32) {
  return {.name = name,
          .attributes = {},
          .inputs = {{DType::f32, std::move(prediction)}, {of_target, std::move(target)}},
          .integer_bound = of_target == DType::i32 ? 2 : 0,
          .tolerance = 0};
}

}  // namespace

OpCases make_auc_cases() {
  std::vector<OpCase> cases = {auc_case("odd", {5, 7}, {5, 7}),
                               auc_case("column", {9, 1}, {9}),
                               auc_case("several", {3, 4, 5}, {3, 4, 5}),
                               auc_case("empty", {0, 7}, {0, 7}),
                               auc_case("labels", {9, 3}, {9, 3}, DType::i32),
                               auc_case("label_column", {9, 1}, {9}, DType::i32),
                               auc_case("speed", {128, 100}, {128, 100})};
  cases.back().benchmark = true;
  return {"auc", auc_reference, cases};
}

}  // namespace lockstep::ops
