// GPU kernels over a HostGrid: what the ops' cases cannot test. What a GPU kernel does instead of throwing, NaNs, and
// what it refuses when it is made.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "lockstep/error.hpp"
#include "ops/embedding/embedding_positions.hpp"
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
  /// The first output, which must have the same bits from both kernels.
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

/// Scores of four samples over three classes; the target's score is the second best, the best, NaN, the best.
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

// 4,097 blocks of 8 rows, the last one shorter: 65 sums of 64 blocks, which are summed in two blocks, and then these. A
// micro-batch of 41 images has as many behind the first layer of a ResNet-50. Two levels: the op's case
// blocks_of_blocks.
TEST_F(GridKernels, BatchNormAddsItsBlocksOnThreeLevels) {
  constexpr Int kRows = 8 * 4096 + 3, kChannels = 513;
  const Problem images = problem("batch_norm", {}, {{DType::f32, {kRows, kChannels}}});
  const auto cpu = images.make_kernel(), grid = grid_kernel(images);
  KernelRun run(images);
  {
    KernelRun on_grid(images);
    for (const auto& [kernel, of] : {std::pair{cpu.get(), &run}, std::pair{grid.get(), &on_grid}}) {
      of->forward(*kernel);
      of->backward(*kernel);
      EXPECT_EQ(of->damage(), "");
    }
    EXPECT_TRUE(on_grid.outputs() == run.outputs());
    EXPECT_TRUE(on_grid.statistics() == run.statistics());
    EXPECT_TRUE(on_grid.input_gradients() == run.input_gradients());
    EXPECT_TRUE(on_grid.parameter_gradients() == run.parameter_gradients());
  }
  const auto x = images.inputs[0].as<float>(), dy = images.output_gradients[0].as<float>();
  const auto mean = values(run.statistics()[0]), variance = values(run.statistics()[1]),
             of_weight = values(run.parameter_gradients()[0]), of_bias = values(run.parameter_gradients()[1]);
  for (const std::size_t channel : {0UL, 300UL, 512UL}) {
    const auto sum = [&](const auto& term) {
      double all = 0;
      for (std::size_t i = channel; i < x.size(); i += kChannels) all += term(double{x[i]}, double{dy[i]});
      return all;
    };
    const double center = sum([](double x_i, double) { return x_i; }) / kRows;
    const double squares = sum([=](double x_i, double) { return (x_i - center) * (x_i - center); });
    const double stddev = std::sqrt(squares / kRows + 1e-5);
    EXPECT_NEAR(mean[channel], center, 1e-6);
    EXPECT_NEAR(variance[channel], squares / (kRows - 1), 1e-6);
    EXPECT_NEAR(of_bias[channel], sum([](double, double dy_i) { return dy_i; }), 1e-3);
    EXPECT_NEAR(of_weight[channel], sum([=](double x_i, double dy_i) { return dy_i * (x_i - center); }) / stddev, 1e-3);
  }
}

TEST_F(GridKernels, EmbeddingsGradientLeavesOutIdsOutsideTheVocabulary) {
  Problem embedding = problem("embedding", {{"vocabulary", Int{3}}, {"width", Int{2}}}, {{DType::i32, {5}}});
  constexpr std::array<std::int32_t, 5> kIds = {2, 0, 2, 0, 2};
  std::copy(kIds.begin(), kIds.end(), embedding.inputs[0].as<std::int32_t>().begin());
  const auto dy = to_doubles(embedding.output_gradients[0]).values;
  const auto gradient = [&] {
    const auto kernel = grid_kernel(embedding);
    KernelRun run(embedding);
    run.forward(*kernel);
    run.backward(*kernel);
    return values(run.parameter_gradients()[0]);
  };
  const auto float_sum = [](double a, double b) -> double { return static_cast<float>(a) + static_cast<float>(b); };
  EXPECT_EQ(gradient(), (std::vector<double>{float_sum(dy[2], dy[6]), float_sum(dy[3], dy[7]), 0, 0,
                                             float_sum(float_sum(dy[0], dy[4]), dy[8]),
                                             float_sum(float_sum(dy[1], dy[5]), dy[9])}));
  for (const std::int32_t bad : {3, -1}) {
    embedding.inputs[0].as<std::int32_t>()[2] = bad;
    EXPECT_EQ(gradient(), (std::vector<double>{float_sum(dy[2], dy[6]), float_sum(dy[3], dy[7]), 0, 0,
                                               float_sum(dy[0], dy[8]), float_sum(dy[1], dy[9])}));
  }
}

TEST_F(GridKernels, EmbeddingOfTooManyIds) {
  EXPECT_NO_THROW(require_gpu_positions(kMaxPositions));
  KernelRequest request;
  request.inputs = {{DType::i32, {1, kMaxPositions + 1}}};
  request.outputs = {{DType::f32, {1, kMaxPositions + 1, 2}}};
  request.parameters = {{DType::f32, {5, 2}}};
  try {
    (void)host_grid_kernels().at("embedding")(request);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(
        error.what(),
        "embedding: on a GPU expected at most 16777216 ids in a micro-batch, found 16777217; take more micro-batches");
  }
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
