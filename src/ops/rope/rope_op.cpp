// rope: rotary position embedding, for the queries or keys [b, T, heads * size] of an attention. With h = size / 2, the
// elements i and i + h of a head (GPT-NeoX's and Llama's order in most programs; the paper pairs neighbours) are turned
// by the angle a = t * base^(-i / h), t being the position:
//
//   y[i] = x[i] cos a - x[i + h] sin a        y[i + h] = x[i + h] cos a + x[i] sin a
//
// The gradient turns back. Su and others, "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/rope/rope_at.hpp"
#include "ops/rope/rotation.hpp"

namespace lockstep::ops {

namespace {

/// The rotations of a position: `cosines` and `sines` are [pairs].
LOCKSTEP_VECTORIZED void rotations_at(const RopeAngles& angles, std::int64_t position, std::int64_t pairs,
                                      float* cosines, float* sines) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    const Rotation rotation = angles.at(position, i);
    cosines[i] = rotation.cosine;
    sines[i] = rotation.sine;
  }
}

/// Turns `heads` heads; `direction` -1 turns back. y may be x.
LOCKSTEP_VECTORIZED void turn(const float* x, float* y, const float* cosines, const float* sines, float direction,
                              std::int64_t heads, std::int64_t pairs) {
  for (std::int64_t head = 0; head < heads; ++head, x += 2 * pairs, y += 2 * pairs) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const float first = x[i], second = x[i + pairs], sine = direction * sines[i];
      y[i] = first * cosines[i] - second * sine;
      y[i + pairs] = second * cosines[i] + first * sine;
    }
  }
}

class RopeCpu final : public Kernel {
 public:
  RopeCpu(const RopeSizes& sizes, double base) : sizes_(sizes), angles_(base, sizes.pairs) {}

  /// The rotations of one position.
  std::size_t workspace_bytes() const override { return 2 * static_cast<std::size_t>(sizes_.pairs) * sizeof(float); }

  void forward(const ForwardCall& call) override { turn_all(input(call), output(call), 1, call.workspace); }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) != nullptr) turn_all(output_gradient(call), input_gradient(call), -1, call.workspace);
  }

 private:
  void turn_all(const float* x, float* y, float direction, void* workspace) const {
    auto *cosines = static_cast<float*>(workspace), *sines = cosines + sizes_.pairs;
    for (std::int64_t t = 0; t < sizes_.positions; ++t) {
      rotations_at(angles_, t, sizes_.pairs, cosines, sines);
      for (std::int64_t b = 0; b < sizes_.batch; ++b) {
        const std::int64_t at = (b * sizes_.positions + t) * sizes_.heads * 2 * sizes_.pairs;
        turn(x + at, y + at, cosines, sines, direction, sizes_.heads, sizes_.pairs);
      }
    }
  }

  RopeSizes sizes_;
  RopeAngles angles_;
};

std::unique_ptr<Kernel> make_rope_cpu(const KernelRequest& request) {
  return std::make_unique<RopeCpu>(RopeSizes(*request.attributes, request.inputs[0].shape),
                                   request.attributes->number("base"));
}

Signature infer_rope(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  const auto fail = [&](const std::string& expected) {
    throw Error(ExitCode::configuration,
                fmt::format("rope: expected {}, found {} of {}", expected, to_string(x.shape), name_of(x.dtype)));
  };
  if (x.dtype != DType::f32 || x.shape.size() != 3) fail("an input [batch, time, width] of f32");
  const std::int64_t heads = attributes.integer("heads"), size = x.shape[2] / heads;
  if (x.shape[2] % heads != 0 || size % 2 != 0 || size == 0 || size > 2 * kRopePairs) {
    fail(fmt::format("a width of {} heads of an even size, at most {}", heads, 2 * kRopePairs));
  }
  return same_shape(attributes, inputs);
}

}  // namespace

void rope_at(const RopePosition& at, const float* x, float* y) {
  std::array<float, kRopePairs> cosines{}, sines{};
  rotations_at(RopeAngles(at.base, at.pairs), at.position, at.pairs, cosines.data(), sines.data());
  turn(x, y, cosines.data(), sines.data(), 1, at.heads, at.pairs);
}

OpDef make_rope() {
  OpDef op;
  op.name = "rope";
  op.doc = "rotary position embedding";
  op.attributes = {{.name = "heads", .kind = AttributeKind::integer, .doc = "heads of the input", .minimum = 1},
                   {.name = "base",
                    .kind = AttributeKind::number,
                    .doc = "pair i of a head turns by base^(-2 i / size) radians a position; Llama 3: 500000",
                    .default_value = 10000.0,
                    .minimum = 1}};
  op.shorthand = "heads";
  op.in_place = {.forward = true, .over_gradient = true, .over_input = false};
  op.infer = infer_rope;
  op.cost = elementwise_cost<4, 4>;
  op.kernels[DeviceKind::cpu] = make_rope_cpu;
  return op;
}

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
