// last, reverse and mask: what a network does with the positions of samples of several lengths [b, T, ...]. Each takes
// lengths as a second input (ops/lengths.hpp); without it all positions count. last is what a recurrent layer has seen
// the whole sample by; two of reverse around a recurrent layer make it run from the sample's end to its beginning.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/positions/moved_rows.hpp"

namespace lockstep::ops {

namespace {

class PositionsCpu final : public Kernel {
 public:
  PositionsCpu(const KernelRequest& request, PositionMove move)
      : forward_(moved_rows(request, move, false)), backward_(moved_rows(request, move, true)) {}

  void forward(const ForwardCall& call) override {
    const Lengths lengths = lengths_of(call, 1, forward_.from);
    move(forward_, lengths, input(call), output(call));
    if (lengths.data != nullptr && !call.saved.empty()) {
      std::copy_n(lengths.data, forward_.samples, static_cast<std::int32_t*>(call.saved[0]));
    }
  }
  void backward(const BackwardCall& call) override {
    const auto* kept = call.saved.empty() ? nullptr : static_cast<const std::int32_t*>(call.saved[0]);
    move(backward_, {kept, forward_.from}, output_gradient(call), input_gradient(call));
  }

 private:
  static void move(const MovedRows& rows, const Lengths& lengths, const float* from, float* to) {
    for (std::int64_t sample = 0; sample < rows.samples; ++sample) {
      const std::int64_t length = lengths.of(sample);
      for (std::int64_t t = 0; t < rows.to; ++t, to += rows.width) {
        const std::int64_t source = rows.source(t, length);
        if (source < 0) {
          std::fill_n(to, rows.width, 0.0F);
        } else {
          std::copy_n(from + (sample * rows.from + source) * rows.width, rows.width, to);
        }
      }
    }
  }

  MovedRows forward_, backward_;
};

Signature infer_positions(const std::string& op, PositionMove move, std::span<const TensorSpec> inputs) {
  Signature signature = same_floats(op, inputs[0]);
  Shape& out = signature.outputs[0].shape;
  if (out.size() < 2 || out[1] < 1) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected an input [batch, time, ...] with positions, found {}", op, to_string(out)));
  }
  if (inputs.size() > 1) {
    require_lengths(op, inputs[0], inputs[1]);
    signature.saved.push_back(inputs[1]);
  }
  if (move == PositionMove::last) out.erase(out.begin() + 1);
  return signature;
}

OpDef positions_op(const std::string& name, const std::string& doc, PositionMove move) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.max_inputs = 2;
  op.constant_inputs = {1};
  op.infer = [name, move](const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
    return infer_positions(name, move, inputs);
  };
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  op.kernels[DeviceKind::cpu] = [move](const KernelRequest& request) {
    return std::make_unique<PositionsCpu>(request, move);
  };
  return op;
}

}  // namespace

MovedRows moved_rows(const KernelRequest& request, PositionMove move, bool backward) {
  const Shape& x = request.inputs[0].shape;
  MovedRows rows{move, backward, x[0], x[1], move == PositionMove::last ? 1 : x[1], 1};
  for (std::size_t i = 2; i < x.size(); ++i) rows.width *= x[i];
  if (backward) std::swap(rows.from, rows.to);
  return rows;
}

OpDef make_last() {
  return positions_op("last", "the last position of each sample", PositionMove::last);
}

OpDef make_reverse() {
  return positions_op("reverse", "reverses the positions of each sample", PositionMove::reverse);
}

OpDef make_mask() {
  return positions_op("mask", "0 at the positions behind a sample's end", PositionMove::mask);
}

void last_to_onnx(OnnxScope& scope) {
  if (scope.node().inputs.size() < 2) {
    const std::string at = scope.integers({scope.input_shape()[1] - 1});
    const std::string one = scope.add("Gather", {scope.input(), at}, {{"axis", std::int64_t{1}}});
    return scope.result(scope.add("Squeeze", {one, scope.integers({1})}));
  }
  const std::string at = scope.add("Sub", {scope.lengths_as_integers(1), scope.integers({1})});
  const std::vector<std::string> inputs{scope.input(), scope.reshape(at, {0, 1})};
  scope.result(scope.add("GatherND", inputs, {{"batch_dims", std::int64_t{1}}}));
}

void reverse_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  if (scope.node().inputs.size() < 2) {
    const std::string end = scope.integers({std::numeric_limits<std::int64_t>::min()}), back = scope.integers({-1});
    return scope.result(scope.add("Slice", {x, back, end, scope.integers({1}), back}));
  }
  scope.result(scope.add("ReverseSequence", {x, scope.lengths_as_integers(1)},
                         {{"batch_axis", std::int64_t{0}}, {"time_axis", std::int64_t{1}}}));
}

void mask_to_onnx(OnnxScope& scope) {
  scope.result(scope.with_padding(0));
}

}  // namespace lockstep::ops
