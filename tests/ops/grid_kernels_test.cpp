// GPU kernels over a HostGrid: what the ops' cases cannot show. What a GPU's kernel does instead of throwing, NaNs, and
// what it refuses when it is made.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "lockstep/error.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

using Int = std::int64_t;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class GridKernels : public testing::Test {
 protected:
  GridKernels() { add_built_in(registry_); }

  [[nodiscard]] Problem problem(const std::string& op, std::map<std::string, Attribute> settings,
                                std::vector<TensorSpec> inputs) const {
    return make_problem(registry_.at(op),
                        {.name = "grid", .attributes = Attributes(std::move(settings)), .inputs = std::move(inputs)});
  }
  static std::unique_ptr<Kernel> grid_kernel(const Problem& problem) {
    return problem.make_kernel(host_grid_kernels().at(problem.op->name));
  }
  static std::vector<double> values(const KernelRun::Bytes& bytes) {
    return to_doubles(bytes, {DType::f32, {static_cast<Int>(bytes.size() / sizeof(float))}}).values;
  }
  /// What both kernels make of it must be the same bits.
  static KernelRun::Bytes first_output(const Problem& problem) {
    const auto cpu = problem.make_kernel(), grid = grid_kernel(problem);
    KernelRun expected(problem), found(problem);
    expected.forward(*cpu);
    found.forward(*grid);
    EXPECT_TRUE(found.outputs() == expected.outputs());
    return found.outputs()[0];
  }

  OpRegistry registry_;
};

/// Scores of four samples over three classes; the target's is the second best, the best, not a number, the best.
Problem with_scores(Problem problem) {
  constexpr std::array<float, 12> kScores = {3, 2, 1, 1, 5, 2, kNaN, kNaN, kNaN, 0, 7, 0};
  constexpr std::array<std::int32_t, 4> kLabels = {1, 1, 0, 1};
  std::copy(kScores.begin(), kScores.end(), problem.inputs[0].as<float>().begin());
  std::copy(kLabels.begin(), kLabels.end(), problem.inputs[1].as<std::int32_t>().begin());
  return problem;
}

const std::vector<TensorSpec> kScoresAndLabels = {{DType::f32, {4, 3}}, {DType::i32, {4}}};

}  // namespace

TEST_F(GridKernels, AccuracyOfScoresThatAreNoNumbers) {
  EXPECT_EQ(values(first_output(with_scores(problem("accuracy", {}, kScoresAndLabels)))),
            (std::vector<double>{0, 1, 0, 1}));
}

TEST_F(GridKernels, AccuracyLeavesOutTheIgnoredLabel) {
  const Problem ignoring = with_scores(problem("accuracy", {{"ignored_index", Int{1}}}, kScoresAndLabels));
  EXPECT_EQ(values(first_output(ignoring)), (std::vector<double>{0, 0, 0, 0}));
}

TEST_F(GridKernels, AccuracyOfALabelThatIsNoClassIsNaN) {
  Problem wrong = with_scores(problem("accuracy", {}, kScoresAndLabels));
  wrong.inputs[1].as<std::int32_t>()[3] = 3;
  const auto kernel = grid_kernel(wrong);
  KernelRun run(wrong);
  run.forward(*kernel);
  const auto right = values(run.outputs()[0]);
  EXPECT_EQ(right[1], 1);
  EXPECT_TRUE(std::isnan(right[3]));
}

TEST_F(GridKernels, AccuracyOfWeightsThatAreNoNumbers) {
  Problem soft = problem("accuracy", {}, {{DType::f32, {4, 3}}, {DType::f32, {4, 3}}});
  constexpr std::array<float, 12> kWeights = {kNaN, 1, 2, 0, kNaN, 1, 2, 2, 1, kNaN, kNaN, kNaN};
  std::copy(kWeights.begin(), kWeights.end(), soft.inputs[1].as<float>().begin());
  (void)first_output(soft);
}

TEST_F(GridKernels, MaxPoolKeepsANaN) {
  Problem images = problem("max_pool", {{"kernel", Int{2}}}, {{DType::f32, {1, 4, 4, 1}}});
  for (const std::size_t pixel : {0UL, 3UL, 13UL}) images.inputs[0].as<float>()[pixel] = kNaN;
  const auto found = values(first_output(images));
  EXPECT_TRUE(std::isnan(found[0]) && std::isnan(found[1]) && std::isnan(found[2]));
  EXPECT_FALSE(std::isnan(found[3]));
}

TEST_F(GridKernels, TransposeOfTooManyDimensions) {
  const std::vector<Int> order = {2, 1, 3, 4, 5, 6, 7, 8};
  const Problem many = problem("transpose", {{"order", order}}, {{DType::f32, {2, 2, 3, 1, 1, 1, 1, 1, 1}}});
  try {
    (void)grid_kernel(many);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(),
                 "transpose: on a GPU expected at most 8 dimensions, found an output [2, 3, 2, 1, 1, 1, 1, 1, 1]; "
                 "flatten some of them by reshape first");
  }
}

}  // namespace lockstep::ops
