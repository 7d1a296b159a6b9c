#include "ops/onnx_scope.hpp"
#include "ops/rope/rotation.hpp"

namespace lockstep::ops {

void rope_to_onnx(OnnxScope& scope) {
  const RopeSizes s(scope.attributes(), scope.input_shape());
  const RopeAngles angles(scope.attributes().number("base"), s.pairs);
  std::vector<float> cosines, sines;
  for (std::int64_t position = 0; position < s.positions; ++position) {
    for (std::int64_t pair = 0; pair < s.pairs; ++pair) {
      const Rotation turn = angles.at(position, pair);
      cosines.push_back(turn.cosine);
      sines.push_back(turn.sine);
    }
  }
  const Shape by_pair{s.positions, 1, 1, s.pairs};
  const std::string cosine = scope.constant(std::move(cosines), by_pair);
  const std::string sine = scope.constant(std::move(sines), by_pair);
  const std::string x = scope.reshape(scope.input(), {0, s.positions, s.heads, 2, s.pairs});
  const auto half = scope.add_several("Split", {x, scope.integers({1, 1})}, 2, {{"axis", std::int64_t{3}}});
  const auto times = [&](const std::string& a, const std::string& b) { return scope.add("Mul", {a, b}); };
  const std::string first = scope.add("Sub", {times(half[0], cosine), times(half[1], sine)});
  const std::string second = scope.add("Add", {times(half[1], cosine), times(half[0], sine)});
  const std::string turned = scope.add("Concat", {first, second}, {{"axis", std::int64_t{3}}});
  scope.result(scope.reshape(turned, {0, s.positions, s.heads * 2 * s.pairs}));
}

}  // namespace lockstep::ops
