// What an op's _cases.cpp declares. For each case, one driver (tests/ops) checks forward against the reference,
// gradients against finite differences, and that repeating gives the same bits; it also makes a benchmark. The node of
// a case has the op's name. Each op folder defines `OpCases make_<op>_cases()` in namespace lockstep::ops.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/op.hpp"

namespace lockstep::ops {

/// A tensor for references: any dtype as doubles, row-major.
struct DoubleTensor {
  Shape shape;
  std::vector<double> values;
};

struct ReferenceCall {
  const Attributes& attributes;
  Mode mode;
  const std::vector<DoubleTensor>& inputs;
  const std::vector<DoubleTensor>& parameters;
  const std::vector<DoubleTensor>& states;
  const StepContext& step;
};

struct ReferenceResult {
  std::vector<DoubleTensor> outputs;
  std::vector<DoubleTensor> statistics;  ///< training mode, ops with states
};

struct OpCase {
  std::string name;       ///< "stride_2_odd_size"
  Attributes attributes;  ///< the driver adds defaults
  std::vector<TensorSpec> inputs = {};
  std::int64_t integer_bound = 0;  ///< integer inputs are uniform in 0 ... bound - 1
  Mode mode = Mode::training;
  double tolerance = 1e-5;           ///< |got - expected| <= tolerance * (1 + max |expected|)
  double gradient_tolerance = 2e-3;  ///< the same, against central differences of the reference
  bool benchmark = false;            ///< large: only timed, not checked by finite differences
  /// May change the default content of input `index` (f32: uniform in -1 ... 1).
  std::function<void(int index, Tensor& tensor)> fill = {};
};

/// A case of inputs and of lengths, one for each sample (ops/lengths.hpp).
inline OpCase with_lengths(std::string name, Attributes attributes, std::vector<TensorSpec> inputs,
                           std::vector<std::int32_t> lengths) {
  const int last = inputs.size();
  inputs.push_back({DType::i32, {static_cast<std::int64_t>(lengths.size())}});
  OpCase made{.name = std::move(name), .attributes = std::move(attributes), .inputs = std::move(inputs)};
  made.integer_bound = 1;
  made.fill = [last, lengths = std::move(lengths)](int index, Tensor& tensor) {
    if (index == last) std::copy_n(lengths.begin(), tensor.elements(), tensor.as<std::int32_t>().begin());
  };
  return made;
}

/// `count` inputs of one shape.
inline std::vector<TensorSpec> several(std::size_t count, Shape shape) {
  return {count, {DType::f32, std::move(shape)}};
}

/// The order in which the CPU kernel adds. A GPU's own kernel (<op>_grid.hpp) must have the same bits where possible.
enum class CpuOrder : std::uint8_t {
  stated,   ///< fixed by code that both share: equal bits
  its_own,  ///< that of oneDNN or of gemm, which also use fused multiply-add: compared with the case's tolerance
};

struct OpCases {
  std::string op;
  std::function<ReferenceResult(const ReferenceCall&)> reference;  ///< naive, in double
  std::vector<OpCase> cases;
  CpuOrder cpu_order = CpuOrder::stated;
};

}  // namespace lockstep::ops
