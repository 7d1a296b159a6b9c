// Kernels of one op compared with each other: with an epilogue and separately, with channels last, the GPU's and the
// CPU's.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/op_case_fixture.hpp"

namespace lockstep::ops {

// Compared with the two kernels in sequence.
TEST_P(OpCaseTest, AnEpilogueHasTheSameBits) {
  if (problem_.op->epilogues.empty()) GTEST_SKIP() << "it has none";
  const auto each = [&](const auto& visit) {
    for (const Made& made : kernels()) {
      for (const std::string& name : epilogues_of(*problem_.op, made.device)) {
        if (!name.empty()) visit(made, name);
      }
    }
  };
  each([&](const Made& made, const std::string& name) {
    SCOPED_TRACE(made.by + " " + name);
    const auto kernel = problem_.make_kernel(made.factory);
    KernelRun first(problem_);
    first.forward(*kernel);
    Problem after = make_problem(built_in_ops().at(name),
                                 {.name = "", .attributes = {}, .inputs = {problem_.signature.outputs[0]}});
    const auto copy = [](const KernelRun::Bytes& from, Tensor& to) { std::copy(from.begin(), from.end(), to.bytes()); };
    copy(first.outputs()[0], after.inputs[0]);
    const auto after_kernel = after.make_kernel();
    KernelRun second(after);
    second.forward(*after_kernel);

    Problem fused = make_problem(*problem_.op, the_case());
    fused.epilogue = name;
    const auto fused_kernel = fused.make_kernel(made.factory);
    KernelRun run(fused);
    run.forward(*fused_kernel);
    EXPECT_TRUE(run.outputs() == second.outputs()) << "forward";
    EXPECT_TRUE(run.statistics() == first.statistics());
    if (!problem_.trains()) return;

    std::copy_n(problem_.output_gradients[0].bytes(), after.output_gradients[0].spec().bytes(),
                after.output_gradients[0].bytes());
    KernelRun middle(after);
    compute(*after_kernel, middle, after);
    Problem apart = make_problem(*problem_.op, the_case());
    copy(middle.input_gradients()[0], apart.output_gradients[0]);
    KernelRun expected(apart);
    compute(*kernel, expected, apart);
    run.backward(*fused_kernel);
    EXPECT_EQ(run.damage(), "");
    EXPECT_TRUE(run.input_gradients()[0] == expected.input_gradients()[0]) << "backward";
    if (problem_.op->passes_gradient) return;  // the others share the first one's
    EXPECT_TRUE(run.input_gradients() == expected.input_gradients()) << "backward";
    EXPECT_TRUE(run.parameter_gradients() == expected.parameter_gradients()) << "backward";
  });
}

TEST_P(OpCaseTest, TheGpuKernelMakesTheSameOfAWeightWithChannelsLast) {
  if (!problem_.op->channels_last.contains(DeviceKind::cuda)) GTEST_SKIP() << "it takes one order";
  for (const std::string& epilogue : epilogues_of(*problem_.op, DeviceKind::cuda)) {
    problem_.epilogue = epilogue;
    const KernelFactory factory = host_grid_kernels().at(problem_.op->name);
    const auto first = problem_.make_kernel(factory), last = problem_.make_kernel(with_channels_last(factory));
    KernelRun expected(problem_), found(problem_);
    compute(*first, expected, problem_);
    compute(*last, found, problem_);
    EXPECT_TRUE(results(found, problem_) == results(expected, problem_)) << epilogue;
  }
}

// Bit for bit, unless the op's cases say that the CPU sums in another order.
TEST_P(OpCaseTest, TheGpuKernelOverItsWholeGridComputesWhatTheCpusDoes) {
  const auto factories = host_grid_kernels();
  const auto factory = factories.find(problem_.op->name);
  if (factory == factories.end()) GTEST_SKIP() << "no GPU kernel of our own";
  const auto cpu = problem_.make_kernel(), gpu = problem_.make_kernel(factory->second);
  KernelRun expected(problem_), found(problem_);
  compute(*cpu, expected, problem_);
  compute(*gpu, found, problem_);
  const auto a = results(expected, problem_), b = results(found, problem_);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (GetParam().cases.cpu_order == CpuOrder::its_own) {
      const auto values = [](const KernelRun::Bytes& bytes) {
        return to_doubles(bytes, {DType::f32, {static_cast<std::int64_t>(bytes.size() / sizeof(float))}});
      };
      expect_close(values(b[i].second), values(a[i].second), the_case().tolerance, a[i].first);
    } else {
      EXPECT_TRUE(a[i] == b[i]) << a[i].first << " differs";
    }
  }
}

}  // namespace lockstep::ops
