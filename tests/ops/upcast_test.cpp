// Every layer's kernel in mixed precision: its results for bfloat16 and float16 are, bit by bit, those of the float32
// kernel for the same values, rounded.
#include "ops/upcast.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "ops/low_precision_problem.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

using Bytes = KernelRun::Bytes;

/// float32 bytes in the low-precision type; other types unchanged.
std::vector<Bytes> downcast_of(DType type, const std::vector<Bytes>& wide, const std::vector<TensorSpec>& specs) {
  std::vector<Bytes> list;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    Bytes& bytes = list.emplace_back(wide[i]);
    if (specs[i].dtype != DType::f32 || wide[i].empty()) continue;
    std::vector<float> values(wide[i].size() / sizeof(float));
    std::vector<std::uint16_t> halves(values.size());
    std::memcpy(values.data(), wide[i].data(), wide[i].size());
    downcast(type, values.data(), halves.data(), static_cast<std::int64_t>(values.size()));
    bytes.resize(halves.size() * sizeof(std::uint16_t));
    std::memcpy(bytes.data(), halves.data(), bytes.size());
  }
  return list;
}

std::vector<Bytes> upcast_of(DType type, const std::vector<Bytes>& low, const std::vector<TensorSpec>& specs) {
  std::vector<Bytes> list;
  for (std::size_t i = 0; i < low.size(); ++i) {
    Bytes& bytes = list.emplace_back(low[i]);
    if (specs[i].dtype != DType::f32 || low[i].empty()) continue;
    std::vector<std::uint16_t> values(low[i].size() / sizeof(std::uint16_t));
    std::vector<float> wide(values.size());
    std::memcpy(values.data(), low[i].data(), low[i].size());
    upcast(type, values.data(), wide.data(), static_cast<std::int64_t>(values.size()));
    bytes.resize(wide.size() * sizeof(float));
    std::memcpy(bytes.data(), wide.data(), bytes.size());
  }
  return list;
}

std::unique_ptr<Kernel> low_precision_kernel_of(DType type, const Problem& problem, const Tested& tested) {
  return problem.make_kernel([&](KernelRequest request) {
    request = low_precision_request(type, problem, std::move(request));
    EXPECT_TRUE(needs_upcast(request));
    return make_kernel({tested.make, tested.takes_low_precision}, request, cpu_casts());
  });
}

void check(DType type, const OpDef& op, const OpCase& the_case, const Tested& tested) {
  Problem wide = make_problem(op, the_case);
  wide.epilogue = tested.epilogue;
  if (tested.low_precision_inputs || op.multiplies) round_all(type, wide.inputs);
  if (tested.low_precision_outputs || op.multiplies) round_all(type, wide.output_gradients);
  if (op.multiplies) round_all(type, wide.parameters, true);
  const Problem low_precision_problem = low_precision_problem_of(type, wide, the_case, tested);
  const auto kernel = low_precision_kernel_of(type, low_precision_problem, tested),
             expected_kernel = wide.make_kernel(tested.make);
  KernelRun expected(wide), found(low_precision_problem);
  expected.forward(*expected_kernel);
  found.forward(*kernel);
  const auto as_found = [&](bool is_low_precision, const std::vector<Bytes>& bytes,
                            const std::vector<TensorSpec>& specs) {
    return is_low_precision ? downcast_of(type, bytes, specs) : bytes;
  };
  EXPECT_TRUE(found.outputs() == as_found(tested.low_precision_outputs, expected.outputs(), wide.signature.outputs))
      << "outputs";
  EXPECT_TRUE(found.statistics() == expected.statistics()) << "statistics";
  if (!wide.trains()) return;
  // Backward may read them.
  if (tested.low_precision_outputs) expected.set_outputs(upcast_of(type, found.outputs(), wide.signature.outputs));
  expected.backward(*expected_kernel);
  found.backward(*kernel);
  EXPECT_TRUE(found.parameter_gradients() == expected.parameter_gradients()) << "parameter gradients";
  const auto gradients = as_found(tested.low_precision_inputs, expected.input_gradients(), wide.input_specs);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!wide.makes_gradient(i)) continue;
    EXPECT_TRUE(found.input_gradients()[i] == gradients[i]) << "gradient " << i;
  }
  EXPECT_EQ(found.damage(), "");
}

/// visit(type, op, case) for all layers.
template <class Visit>
int for_layers(const Visit& visit) {
  OpRegistry ops;
  add_built_in(ops);
  int visited = 0;
  for (const OpCases& cases : all_cases()) {
    const OpDef& op = ops.at(cases.op);
    if ((op.kind != OpKind::layer && op.kind != OpKind::fused) || op.view) continue;
    for (const OpCase& the_case : cases.cases) {
      if (the_case.benchmark) continue;
      for (const DType type : {DType::bf16, DType::f16}) {
        SCOPED_TRACE(cases.op + ", " + the_case.name + ", " + std::string(name_of(type)));
        visit(type, op, the_case);
        ++visited;
      }
    }
  }
  return visited;
}

}  // namespace

TEST(Upcast, EveryLayersKernelComputesInFloat32AndRounds) {
  const int checked = for_layers([](DType type, const OpDef& op, const OpCase& the_case) {
    check(type, op, the_case, {op.kernels.at(DeviceKind::cpu)});
  });
  EXPECT_GT(checked, 200);
}

TEST(LowPrecisionElements, EveryLayersGpuKernelComputesInFloat32AndRounds) {
  const auto grids = host_grid_kernels();
  const int checked = for_layers([&](DType type, const OpDef& op, const OpCase& the_case) {
    for (const std::string& epilogue : epilogues_of(op, DeviceKind::cuda)) {
      check(type, op, the_case, {grids.at(op.name), true, op.multiplies, true, true, epilogue});
    }
  });
  EXPECT_GT(checked, 200);
}

// A model's input and its output stay in float32.
TEST(LowPrecisionElements, AProductTakesFloat32InAndOut) {
  const auto grids = host_grid_kernels();
  int checked = 0;
  for_layers([&](DType type, const OpDef& op, const OpCase& the_case) {
    if (!op.multiplies) return;
    for (const std::string& epilogue : epilogues_of(op, DeviceKind::cuda)) {
      for (const auto& [in, out] : {std::pair(false, true), {true, false}, {false, false}}) {
        check(type, op, the_case, {grids.at(op.name), true, true, in, out, epilogue});
        ++checked;
      }
    }
  });
  EXPECT_GT(checked, 40);
}

TEST(LowPrecisionElements, AllButTheseHaveAKernelOfTheirOwn) {
  const auto grids = host_grid_kernels();
  std::set<std::string> upcast;
  for_layers([&](DType type, const OpDef& op, const OpCase& the_case) {
    const Tested tested{grids.at(op.name), true, op.multiplies};
    const Problem problem = low_precision_problem_of(type, make_problem(op, the_case), the_case, tested);
    (void)problem.make_kernel([&](const KernelRequest& request) {
      if (grids.at(op.name)(low_precision_request(type, problem, request)) == nullptr) upcast.insert(op.name);
      return std::unique_ptr<Kernel>();
    });
  });
  // add and mul with more than two inputs
  EXPECT_EQ(upcast, (std::set<std::string>{"add", "attention", "gru", "lstm", "mul"}));
}

TEST(Upcast, LeavesFloat32Alone) {
  KernelRequest request;
  request.inputs = request.outputs = {{DType::f32, {2, 3}}};
  EXPECT_FALSE(needs_upcast(request));
  request.compute_type = DType::bf16;
  EXPECT_TRUE(needs_upcast(request));
}

}  // namespace lockstep::ops
