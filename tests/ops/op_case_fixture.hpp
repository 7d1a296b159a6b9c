// The fixture of the tests that every op's cases must pass: a concrete problem, its kernels, and their results.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "ops/op_driver.hpp"
#include "ops/registry.hpp"
#include "ops/reordered.hpp"

namespace lockstep::ops {

inline const OpRegistry& built_in_ops() {
  static const OpRegistry ops = [] {
    OpRegistry list;
    add_built_in(list);
    return list;
  }();
  return ops;
}

struct CaseOfOp {
  OpCases cases;
  OpCase the_case;
};

inline void PrintTo(const CaseOfOp& parameter, std::ostream* stream) {
  *stream << parameter.cases.op << " " << parameter.the_case.name;
}

class OpCaseTest : public testing::TestWithParam<CaseOfOp> {
 protected:
  void SetUp() override {
    const OpDef* op = built_in_ops().find(GetParam().cases.op);
    ASSERT_NE(op, nullptr) << "no op '" << GetParam().cases.op << "'";
    problem_ = make_problem(*op, GetParam().the_case);
  }
  [[nodiscard]] const OpCase& the_case() const { return GetParam().the_case; }

  /// The kernels that run here: the CPU's, and the GPU's over its whole grid.
  struct Made {
    std::string by;
    KernelFactory factory;
    DeviceKind device;
  };
  [[nodiscard]] std::vector<Made> kernels() const {
    std::vector<Made> list = {{"the CPU's kernel", problem_.op->kernels.at(DeviceKind::cpu), DeviceKind::cpu}};
    const auto grids = host_grid_kernels();
    if (const auto grid = grids.find(problem_.op->name); grid != grids.end()) {
      list.push_back({"the GPU's kernel", grid->second, DeviceKind::cuda});
      if (problem_.op->channels_last.contains(DeviceKind::cuda)) {
        list.push_back({"the GPU's kernel, channels last", with_channels_last(grid->second), DeviceKind::cuda});
      }
    }
    return list;
  }
  Problem problem_;
};

inline double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

inline void expect_close(const DoubleTensor& got, const DoubleTensor& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(to_string(got.shape), to_string(expected.shape)) << what;
  ASSERT_EQ(got.values.size(), expected.values.size()) << what;
  const double allowed = tolerance * (1 + largest(expected.values));
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double error = std::abs(got.values[i] - expected.values[i]);
    const bool same = got.values[i] == expected.values[i];  // infinities too
    ASSERT_TRUE(same || error <= allowed) << what << ", element " << i << ": got " << got.values[i] << ", expected "
                                          << expected.values[i] << ", error " << error << " > " << allowed;
  }
}

/// Everything that a run computed, as one list of named bytes.
inline std::vector<std::pair<std::string, KernelRun::Bytes>> results(const KernelRun& run, const Problem& problem) {
  std::vector<std::pair<std::string, KernelRun::Bytes>> list;
  const auto add = [&](const char* what, const std::vector<KernelRun::Bytes>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) list.emplace_back(fmt::format("{} {}", what, i), tensors[i]);
  };
  add("output", run.outputs());
  add("statistic", run.statistics());
  if (problem.trains()) {
    const auto gradients = run.input_gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (problem.wants_gradient(i)) list.emplace_back(fmt::format("input gradient {}", i), gradients[i]);
    }
    add("parameter gradient", run.parameter_gradients());
  }
  return list;
}

inline void compute(Kernel& kernel, KernelRun& run, const Problem& problem) {
  run.forward(kernel);
  if (problem.trains()) run.backward(kernel);
  EXPECT_EQ(run.damage(), "");
}

}  // namespace lockstep::ops
