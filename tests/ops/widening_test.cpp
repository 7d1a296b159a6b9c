// Every layer's kernel in mixed precision: what it makes of bfloat16 and of float16 is, bit by bit, what the float32
// kernel makes of the same values, rounded.
#include "ops/widening.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/narrow.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

using Bytes = KernelRun::Bytes;

Tensor copied(const Tensor& tensor) {
  Tensor same(tensor.spec());
  std::copy_n(tensor.bytes(), tensor.spec().bytes(), same.bytes());
  return same;
}

void round_all(DType type, std::vector<Tensor>& tensors, bool only_matrices = false) {
  for (Tensor& tensor : tensors) {
    if (tensor.dtype() != DType::f32 || (only_matrices && tensor.shape().size() < 2)) continue;
    const Tensor wide = copied(tensor);
    round_to(type, wide.as<float>().data(), tensor.as<float>().data(), tensor.elements());
  }
}

Tensor narrowed(DType type, const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) return copied(tensor);
  Tensor short_one({type, tensor.shape()});
  narrow(type, tensor.as<float>().data(), short_one.as<std::uint16_t>().data(), tensor.elements());
  return short_one;
}

std::vector<Tensor> narrowed(DType type, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> list;
  for (const Tensor& tensor : tensors) list.push_back(narrowed(type, tensor));
  return list;
}

void narrow_specs(DType type, std::vector<TensorSpec>& specs) {
  for (TensorSpec& spec : specs) {
    if (spec.dtype == DType::f32) spec.dtype = type;
  }
}

/// Of float32 bytes, in the narrow type; other types as they are.
std::vector<Bytes> narrowed(DType type, const std::vector<Bytes>& wide, const std::vector<TensorSpec>& specs) {
  std::vector<Bytes> list;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    Bytes& bytes = list.emplace_back(wide[i]);
    if (specs[i].dtype != DType::f32) continue;
    std::vector<float> values(wide[i].size() / sizeof(float));
    std::vector<std::uint16_t> halves(values.size());
    std::memcpy(values.data(), wide[i].data(), wide[i].size());
    narrow(type, values.data(), halves.data(), static_cast<std::int64_t>(values.size()));
    bytes.resize(halves.size() * sizeof(std::uint16_t));
    std::memcpy(bytes.data(), halves.data(), bytes.size());
  }
  return list;
}

std::vector<Bytes> widened(DType type, const std::vector<Bytes>& narrow, const std::vector<TensorSpec>& specs) {
  std::vector<Bytes> list;
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    Bytes& bytes = list.emplace_back(narrow[i]);
    if (specs[i].dtype != DType::f32) continue;
    std::vector<std::uint16_t> values(narrow[i].size() / sizeof(std::uint16_t));
    std::vector<float> wide(values.size());
    std::memcpy(values.data(), narrow[i].data(), narrow[i].size());
    widen(type, values.data(), wide.data(), static_cast<std::int64_t>(values.size()));
    bytes.resize(wide.size() * sizeof(float));
    std::memcpy(bytes.data(), wide.data(), bytes.size());
  }
  return list;
}

void check(DType type, const OpDef& op, const OpCase& the_case) {
  Problem wide = make_problem(op, the_case);
  round_all(type, wide.inputs);
  round_all(type, wide.output_gradients);
  if (op.multiplies) round_all(type, wide.parameters, true);

  // The same problem, whose parameters need not be rounded: the kernel does that itself.
  Problem narrow_problem = make_problem(op, the_case);
  narrow_problem.inputs = narrowed(type, wide.inputs);
  narrow_problem.output_gradients = narrowed(type, wide.output_gradients);
  narrow_specs(type, narrow_problem.input_specs);
  narrow_specs(type, narrow_problem.signature.outputs);
  const KernelFactory& make = op.kernels.at(DeviceKind::cpu);
  const auto kernel = narrow_problem.make_kernel([&](KernelRequest request) {
    if (op.multiplies) request.products = type;
    EXPECT_TRUE(wants_widening(request));
    return make_widening(make, request);
  });

  const auto expected_kernel = wide.make_kernel();
  KernelRun expected(wide), found(narrow_problem);
  expected.forward(*expected_kernel);
  found.forward(*kernel);
  EXPECT_TRUE(found.outputs() == narrowed(type, expected.outputs(), wide.signature.outputs)) << "outputs";
  EXPECT_TRUE(found.statistics() == expected.statistics()) << "statistics";
  if (!wide.trains()) return;
  expected.set_outputs(widened(type, found.outputs(), wide.signature.outputs));  // backward may read them
  expected.backward(*expected_kernel);
  found.backward(*kernel);
  EXPECT_TRUE(found.parameter_gradients() == expected.parameter_gradients()) << "parameter gradients";
  const auto gradients = expected.input_gradients(), narrow_gradients = narrowed(type, gradients, wide.input_specs);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!wide.wants_gradient(i)) continue;
    EXPECT_TRUE(found.input_gradients()[i] == narrow_gradients[i]) << "gradient " << i;
  }
  EXPECT_EQ(found.damage(), "");
}

}  // namespace

TEST(Widening, EveryLayersKernelComputesInFloat32AndRounds) {
  OpRegistry ops;
  add_built_in(ops);
  int checked = 0;
  for (const OpCases& cases : all_cases()) {
    const OpDef& op = ops.at(cases.op);
    if (op.kind != OpKind::layer || op.view) continue;
    for (const OpCase& the_case : cases.cases) {
      if (the_case.benchmark) continue;
      for (const DType type : {DType::bf16, DType::f16}) {
        SCOPED_TRACE(cases.op + ", " + the_case.name + ", " + std::string(name_of(type)));
        check(type, op, the_case);
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 200);
}

TEST(Widening, LeavesFloat32Alone) {
  KernelRequest request;
  request.inputs = request.outputs = {{DType::f32, {2, 3}}};
  EXPECT_FALSE(wants_widening(request));
  request.products = DType::bf16;
  EXPECT_TRUE(wants_widening(request));
}

}  // namespace lockstep::ops
