// linear and conv in bfloat16 where oneDNN computes them natively: the result of float32's kernel for the same values,
// up to the order of its sums, rounded once.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "allocation_counter.hpp"
#include "device/cpu/cpu_info.hpp"
#include "device/device.hpp"
#include "ops/dnnl_layer_cpu.hpp"
#include "ops/low_precision_problem.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

/// The results of one run.
struct Results {
  std::vector<KernelRun::Bytes> outputs, input_gradients, parameter_gradients;
  bool operator==(const Results&) const = default;
};

Results computed(Kernel& kernel, const Problem& problem, RunOptions options = {}) {
  KernelRun run(problem, std::move(options));
  run.forward(kernel);
  if (problem.trains()) run.backward(kernel);
  EXPECT_EQ(run.damage(), "");
  if (!problem.trains()) return {run.outputs(), {}, {}};
  return {run.outputs(), run.input_gradients(), run.parameter_gradients()};
}

/// Each element may be off by half of bfloat16's last place, if it is stored in bfloat16, and by the order of sums.
void expect_rounded_once(const KernelRun::Bytes& found, const TensorSpec& spec, const KernelRun::Bytes& wide,
                         double tolerance, const std::string& what) {
  const DoubleTensor got = to_doubles(found, spec), expected = to_doubles(wide, {DType::f32, spec.shape});
  double largest = 0;
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double half_a_place = spec.dtype == DType::bf16 ? std::abs(expected.values[i]) / 256 : 0;
    ASSERT_NEAR(got.values[i], expected.values[i], half_a_place + tolerance * (1 + largest)) << what << " " << i;
  }
}

class NativeBf16 : public testing::Test {
 protected:
  NativeBf16() { add_built_in(ops_); }
  void SetUp() override {
    if (!device::cpu_info().multiplies_bf16) {
      GTEST_SKIP() << "oneDNN multiplies no bfloat16 on this processor (" << device::cpu_info().isa
                   << "): it is upcast around float32's kernels";
    }
  }

  /// The case of an op, in float32 but rounded, and in bfloat16.
  struct Pair {
    OpCase the_case;
    Problem wide, low;
  };
  [[nodiscard]] static Pair pair_of(const OpDef& op, OpCase the_case, const Tested& tested,
                                    const char* micro_batch = "") {
    the_case.name += micro_batch;  // values are derived from the name
    Pair pair{the_case, make_problem(op, the_case), {}};
    for (auto* tensors : {&pair.wide.inputs, &pair.wide.output_gradients}) round_all(DType::bf16, *tensors);
    round_all(DType::bf16, pair.wide.parameters, true);
    pair.low = low_precision_problem_of(DType::bf16, pair.wide, pair.the_case, tested);
    return pair;
  }
  /// Null if it is left to upcasting.
  [[nodiscard]] static std::unique_ptr<Kernel> native(const Problem& problem) {
    return problem.make_kernel([&](KernelRequest request) {
      return problem.op->kernels.at(DeviceKind::cpu)(low_precision_request(DType::bf16, problem, std::move(request)));
    });
  }
  /// visit(pair, kernel) for all cases of linear and conv that oneDNN computes, with x and y in bfloat16, or in the
  /// types that a model's input and output have; returns their number.
  template <class Visit>
  int for_native(const Visit& visit) {
    int visited = 0;
    for (const OpCases& cases : all_cases()) {
      if (cases.op != "linear" && cases.op != "conv") continue;
      for (const OpCase& the_case : cases.cases) {
        for (const auto& [in, out] : {std::pair(true, true), {false, true}, {true, false}, {false, false}}) {
          if (the_case.benchmark && !(in && out)) continue;  // big
          SCOPED_TRACE(cases.op + ", " + the_case.name + (in ? "" : ", x in float32") + (out ? "" : ", y in float32"));
          const Tested tested{{}, true, false, in, out};
          const Pair pair = pair_of(ops_.at(cases.op), the_case, tested);
          const auto kernel = native(pair.low);
          if (kernel == nullptr) continue;
          visit(pair, tested, *kernel);
          ++visited;
        }
      }
    }
    return visited;
  }

  static void expect_float32_rounded(const Pair& pair, Kernel& kernel) {
    const auto wide_kernel = pair.wide.make_kernel();
    const Results found = computed(kernel, pair.low), expected = computed(*wide_kernel, pair.wide);
    const double tolerance = pair.the_case.tolerance;
    expect_rounded_once(found.outputs[0], pair.low.signature.outputs[0], expected.outputs[0], tolerance, "output");
    if (!pair.low.trains()) return;
    expect_rounded_once(found.input_gradients[0], pair.low.input_specs[0], expected.input_gradients[0], tolerance,
                        "input gradient");
    for (std::size_t i = 0; i < found.parameter_gradients.size(); ++i) {
      expect_rounded_once(found.parameter_gradients[i], {DType::f32, pair.wide.parameters[i].shape()},
                          expected.parameter_gradients[i], tolerance, "parameter gradient");
    }
  }

  OpRegistry ops_;
};

/// Runs on any processor.
class NativeBf16Choice : public NativeBf16 {
 protected:
  void SetUp() override {}
};

}  // namespace

TEST_F(NativeBf16Choice, IsOfTheInstructionSetAndTheTypes) {
  KernelRequest request;
  request.inputs = request.outputs = {{DType::bf16, {2, 3}}};
  request.compute_type = DType::bf16;
  EXPECT_TRUE(multiplies_natively(request, dnnl::cpu_isa::avx512_core_bf16));
  EXPECT_TRUE(multiplies_natively(request, dnnl::cpu_isa::avx512_core_amx));
  EXPECT_FALSE(multiplies_natively(request, dnnl::cpu_isa::avx512_core));
  EXPECT_FALSE(multiplies_natively(request, dnnl::cpu_isa::avx2));
  request.inputs[0].dtype = DType::f32;
  EXPECT_TRUE(multiplies_natively(request, dnnl::cpu_isa::avx512_core_bf16));
  request.inputs[0].dtype = request.outputs[0].dtype = request.compute_type = DType::f16;
  EXPECT_FALSE(multiplies_natively(request, dnnl::cpu_isa::avx512_core_amx));
}

TEST_F(NativeBf16Choice, IsTakenWhereTheProcessorHasItAndElseUpcast) {
  const bool here = device::cpu_info().multiplies_bf16;
  for (const std::string op : {"linear", "conv"}) {
    ASSERT_TRUE(ops_.at(op).takes_low_precision.contains(DeviceKind::cpu));
    OpCase the_case{.name = "of_sixteens", .attributes = {}, .inputs = {{DType::f32, {16, 32}}}};
    the_case.attributes = Attributes({{"features", std::int64_t{32}}});
    if (op == "conv") {
      the_case.attributes = Attributes({{"filters", std::int64_t{32}}, {"kernel", std::int64_t{3}}});
      the_case.inputs = {{DType::f32, {2, 8, 8, 32}}};
    }
    const auto kernel = native(pair_of(ops_.at(op), the_case, {{}, true}).low);
    ASSERT_EQ(kernel != nullptr, here) << op;
    if (!here) continue;
    const std::string algorithms = kernel->algorithms();
    EXPECT_NE(algorithms.find("output: "), std::string::npos) << algorithms;
    EXPECT_NE(algorithms.find("weight's gradient: "), std::string::npos) << algorithms;
    RecordProperty(op, algorithms);
    std::printf("%s in bfloat16 is computed here: %s\n", op.c_str(), algorithms.c_str());
  }
}

TEST_F(NativeBf16, IsFloat32RoundedOnce) {
  const int checked =
      for_native([](const Pair& pair, const Tested&, Kernel& kernel) { expect_float32_rounded(pair, kernel); });
  EXPECT_GT(checked, 60);
}

// oneDNN 2.6 unpacks only a part of such a weight's gradient; what it computes wrong is left to float32's kernels.
TEST_F(NativeBf16, WideWeightsAreWhole) {
  for (const std::int64_t out : {64, 66, 67, 80, 96, 130, 192}) {
    for (const std::int64_t in : {3136, 6272, 8624}) {
      SCOPED_TRACE(std::to_string(out) + " of " + std::to_string(in));
      const OpCase the_case{
          .name = "wide", .attributes = Attributes({{"features", out}}), .inputs = {{DType::f32, {3, in}}}};
      const Pair pair = pair_of(ops_.at("linear"), the_case, {{}, true});
      if (const auto kernel = native(pair.low)) expect_float32_rounded(pair, *kernel);
    }
  }
}

TEST_F(NativeBf16, BitsDependOnNothingElse) {
  for_native([this](const Pair& pair, const Tested& tested, Kernel& kernel) {
    const Results expected = computed(kernel, pair.low);
    const Pair another = pair_of(*pair.wide.op, pair.the_case, tested, ", another micro-batch");
    (void)computed(kernel, another.low);
    EXPECT_TRUE(computed(kernel, pair.low, {.junk = std::byte{0}}) == expected) << "after another micro-batch";
    EXPECT_TRUE(computed(kernel, pair.low, {.shift = 1}) == expected) << "at other addresses";
    Results elsewhere;
    std::thread([&] { elsewhere = computed(*native(pair.low), pair.low, {.shift = 3}); }).join();
    EXPECT_TRUE(elsewhere == expected) << "in another kernel on another thread";
  });
}

TEST_F(NativeBf16, AGradientAloneHasTheSameBits) {
  for_native([](const Pair& pair, const Tested&, Kernel& kernel) {
    if (!pair.low.trains()) return;
    const Results all = computed(kernel, pair.low);
    const std::size_t parameters = all.parameter_gradients.size();
    for (std::size_t i = 0; i < parameters; ++i) {
      std::vector<bool> wanted(parameters);
      wanted[i] = true;
      const Results alone = computed(kernel, pair.low, {.want_inputs = {false}, .want_parameters = wanted});
      EXPECT_TRUE(alone.parameter_gradients[i] == all.parameter_gradients[i]) << "parameter " << i;
    }
    const Results data = computed(kernel, pair.low, {.want_parameters = std::vector<bool>(parameters)});
    EXPECT_TRUE(data.input_gradients == all.input_gradients);
  });
}

TEST_F(NativeBf16, PacksItsWeightAgainForANewVersion) {
  for_native([this](const Pair& pair, const Tested& tested, Kernel& kernel) {
    (void)computed(kernel, pair.low);
    Pair updated = pair_of(*pair.wide.op, pair.the_case, tested, ", updated");
    ++updated.low.step.parameters_version;
    EXPECT_TRUE(computed(kernel, updated.low) == computed(*native(updated.low), updated.low));
  });
}

TEST_F(NativeBf16, AllocatesInTheFirstCallOnly) {
  for_native([](const Pair& pair, const Tested&, Kernel& kernel) {
    KernelRun run(pair.low);
    run.forward(kernel);
    if (pair.low.trains()) run.backward(kernel);
    const std::size_t before = allocations().large;
    run.forward(kernel);
    if (pair.low.trains()) run.backward(kernel);
    EXPECT_EQ(allocations().large, before);
  });
}

}  // namespace lockstep::ops
