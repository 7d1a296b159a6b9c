// Saving memory changes no bit, on the CPU and over grids: kernels that write over what they read (OpDef::in_place),
// and those that recompute their output (Kernel::recompute).
#include <gtest/gtest.h>

#include "ops/op_driver.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

class SavedMemory : public testing::Test {
 protected:
  SavedMemory() { add_built_in(registry_); }

  /// try_it(problem, factory) for each case of the op, with and without each epilogue, by each kernel.
  template <class Try>
  void each(const OpCases& cases, const Try& try_it) const {
    const OpDef& op = registry_.at(cases.op);
    std::vector<std::pair<DeviceKind, KernelFactory>> kernels = {{DeviceKind::cpu, op.kernels.at(DeviceKind::cpu)}};
    const auto grids = host_grid_kernels();
    if (const auto grid = grids.find(op.name); grid != grids.end())
      kernels.emplace_back(DeviceKind::cuda, grid->second);
    for (const OpCase& the_case : cases.cases) {
      if (the_case.benchmark) continue;
      for (const auto& [device, factory] : kernels) {
        for (const std::string& epilogue : epilogues_of(op, device)) {
          Problem problem = make_problem(op, the_case);
          problem.epilogue = epilogue;
          SCOPED_TRACE(cases.op + " " + the_case.name + " " + epilogue);
          try_it(problem, factory);
        }
      }
    }
  }

  static void expect_same_forward(const Problem& problem, const KernelFactory& factory, Over over) {
    const auto kernel = problem.make_kernel(factory);
    KernelRun apart(problem), in_place(problem);
    apart.forward(*kernel);
    in_place.forward(*kernel, over);
    EXPECT_TRUE(in_place.outputs() == apart.outputs());
    EXPECT_EQ(in_place.damage(), "");
  }

  static void expect_same_backward(const Problem& problem, const KernelFactory& factory, Over over) {
    const auto kernel = problem.make_kernel(factory);
    KernelRun apart(problem), in_place(problem);
    apart.forward(*kernel);
    apart.backward(*kernel);
    in_place.forward(*kernel);
    in_place.backward(*kernel, over);
    EXPECT_TRUE(in_place.input_gradients() == apart.input_gradients());
    EXPECT_TRUE(in_place.parameter_gradients() == apart.parameter_gradients());
    EXPECT_EQ(in_place.damage(), "");
  }

  OpRegistry registry_;
};

bool of_one_size(const Problem& problem) {
  return problem.input_specs[0] == problem.signature.outputs[0];
}

}  // namespace

TEST_F(SavedMemory, ForwardOverAnInput) {
  int tried = 0;
  for (const OpCases& cases : all_cases()) {
    if (!registry_.at(cases.op).in_place.forward) continue;
    each(cases, [&](const Problem& problem, const KernelFactory& factory) {
      if (!of_one_size(problem)) return;
      ++tried;
      expect_same_forward(problem, factory, Over::first_input);
      const auto& inputs = problem.input_specs;
      if (inputs.size() == 2 && inputs[1] == problem.signature.outputs[0])
        expect_same_forward(problem, factory, Over::second_input);
    });
  }
  EXPECT_GT(tried, 30);
}

TEST_F(SavedMemory, BackwardOverTheGradientOrTheInput) {
  int tried = 0;
  for (const OpCases& cases : all_cases()) {
    const InPlace in_place = registry_.at(cases.op).in_place;
    if (!in_place.over_gradient && !in_place.over_input) continue;
    each(cases, [&](const Problem& problem, const KernelFactory& factory) {
      if (!problem.trains()) return;
      ++tried;
      if (in_place.over_gradient && of_one_size(problem)) expect_same_backward(problem, factory, Over::gradient);
      if (in_place.over_input) expect_same_backward(problem, factory, Over::first_input);
    });
  }
  EXPECT_GT(tried, 30);
}

TEST_F(SavedMemory, WhatIsMadeAgainHasForwardsBits) {
  int tried = 0;
  for (const OpCases& cases : all_cases()) {
    if (registry_.at(cases.op).view) continue;
    each(cases, [&](const Problem& problem, const KernelFactory& factory) {
      if (!problem.trains()) return;
      const auto kernel = problem.make_kernel(factory);
      if (!kernel->can_recompute()) return;
      ++tried;
      KernelRun once(problem), again(problem);
      once.forward(*kernel);
      once.backward(*kernel);
      again.forward(*kernel);
      again.recompute(*kernel);
      EXPECT_TRUE(again.outputs() == once.outputs());
      again.backward(*kernel);
      EXPECT_TRUE(again.input_gradients() == once.input_gradients());
      EXPECT_EQ(again.damage(), "");
    });
  }
  EXPECT_GT(tried, 8);
}

}  // namespace lockstep::ops
