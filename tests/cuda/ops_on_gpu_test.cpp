// Every case of every op on a GPU: our own kernels have the bits that their bodies have on the CPU, over the same grid;
// what a library computes is within the case's tolerance of the CPU's kernel. Without a GPU the first is skipped, and
// the way of the operands there and back is tested alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/gpu/cuda_module.hpp"
#include "backend/gpu/driver.hpp"
#include "cuda/host_gpu.hpp"
#include "cuda/kernel_on_gpu.hpp"
#include "ops/gpu_kernels.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

using Named = std::vector<std::pair<std::string, KernelRun::Bytes>>;

Named compute(const Problem& problem, Kernel& kernel) {
  KernelRun run(problem);
  run.forward(kernel);
  if (problem.trains()) run.backward(kernel);
  EXPECT_EQ(run.damage(), "");
  Named results;
  const auto add = [&](const char* what, const std::vector<KernelRun::Bytes>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) results.emplace_back(fmt::format("{} {}", what, i), tensors[i]);
  };
  add("output", run.outputs());
  add("statistic", run.statistics());
  if (problem.trains()) {
    add("input gradient", run.input_gradients());
    add("parameter gradient", run.parameter_gradients());
  }
  return results;
}

/// The first thing that differs by more than `tolerance` of the largest value; bits, where it is 0. Empty: nothing.
std::string difference(const Named& expected, const Named& found, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, a] = expected[i];
    const auto& b = found.at(i).second;
    if (a == b) continue;
    if (tolerance == 0) return name + " has other bits";
    const TensorSpec spec{DType::f32, {static_cast<std::int64_t>(a.size() / sizeof(float))}};
    const auto x = to_doubles(a, spec).values, y = to_doubles(b, spec).values;
    double largest = 0;
    for (const double value : x) largest = std::max(largest, std::abs(value));
    for (std::size_t e = 0; e < x.size(); ++e) {
      const bool close = x[e] == y[e] || std::abs(x[e] - y[e]) <= tolerance * (1 + largest);
      if (!close) return fmt::format("{}, element {}: expected {}, found {}", name, e, x[e], y[e]);
    }
  }
  return "";
}

class OpsOnGpu : public testing::Test {
 protected:
  OpsOnGpu() { add_built_in(cpu_); }

  /// visit(op's cases, case, problem) for all that have a kernel and are not only timed.
  template <class Visit>
  void for_cases(const Visit& visit) const {
    for (const OpCases& cases : all_cases()) {
      const OpDef& op = cpu_.at(cases.op);
      for (const OpCase& one : cases.cases) {
        if (!one.benchmark && !op.view) visit(cases, one, make_problem(op, one));
      }
    }
  }

  OpRegistry cpu_;
};

}  // namespace

TEST_F(OpsOnGpu, ComputeWhatTheyDoOnTheCpu) {
  const auto driver = backend::ask_driver();
  if (driver.state != backend::DriverState::ready) {
    GTEST_SKIP() << "no GPU: " << (driver.problem.empty() ? "the driver sees none" : driver.problem);
  }
  const auto module = backend::open_module();
  if (!module) GTEST_SKIP() << "no CUDA module: " << module.problem;
  OpRegistry gpu_ops;
  add_built_in(gpu_ops);
  add_gpu_kernels(module, gpu_ops);
  const auto gpu = backend::make_gpu(module, driver.gpus.front().ordinal, {"this host", 0, driver.gpus.front().name});
  gpu->make_current();
  const auto stream = gpu->make_kernel_stream();
  const auto grids = host_grid_kernels();
  int compared = 0;
  for_cases([&](const OpCases& cases, const OpCase& one, const Problem& problem) {
    const auto& factories = gpu_ops.at(cases.op).kernels;
    const auto made = factories.find(DeviceKind::cuda);
    ASSERT_NE(made, factories.end()) << cases.op << " has no kernel for GPUs";
    const auto on_gpu = problem.make_kernel([&](const KernelRequest& request) {
      return std::make_unique<KernelOnGpu>(request, made->second, *gpu, stream);
    });
    const bool own = on_gpu->plan().empty() && grids.contains(cases.op);
    const auto on_cpu = own ? problem.make_kernel(grids.at(cases.op)) : problem.make_kernel();
    EXPECT_EQ(difference(compute(problem, *on_cpu), compute(problem, *on_gpu), own ? 0 : one.tolerance), "")
        << cases.op << ", case " << one.name << ": " << on_gpu->plan();
    const Named first = compute(problem, *on_gpu);
    EXPECT_EQ(difference(first, compute(problem, *on_gpu), 0), "") << cases.op << ", case " << one.name << ", again";
    ++compared;
  });
  EXPECT_GT(compared, 100);
}

TEST_F(OpsOnGpu, TheWayThereAndBackChangesNothing) {
  backend::HostGpu gpu;
  int compared = 0;
  for_cases([&](const OpCases& cases, const OpCase& one, const Problem& problem) {
    const auto direct = problem.make_kernel(), around = problem.make_kernel([&](const KernelRequest&request) {
      return std::make_unique<KernelOnGpu>(request, problem.op->kernels.at(DeviceKind::cpu), gpu, gpu.make_stream());
    });
    EXPECT_EQ(difference(compute(problem, *direct), compute(problem, *around), 0), "") << cases.op << ", " << one.name;
    ++compared;
  });
  EXPECT_GT(compared, 100);
}

TEST(OpsOnGpuDifference, IsFound) {
  const auto bytes = [](std::vector<float> values) {
    const auto view = std::as_bytes(std::span(values));
    return KernelRun::Bytes(view.begin(), view.end());
  };
  const Named expected = {{"output 0", bytes({1, 2})}}, near = {{"output 0", bytes({1, 2.0001F})}};
  EXPECT_EQ(difference(expected, near, 1e-3), "");
  EXPECT_EQ(difference(expected, near, 0), "output 0 has other bits");
  EXPECT_EQ(difference(expected, {{"output 0", bytes({1, NAN})}}, 1e-3), "output 0, element 1: expected 2, found nan");
}

}  // namespace lockstep::ops
