// The update on a GPU: its kernels' functors over their whole grids have the bits of the CPU's, through several steps,
// and a fake detects every unordered access.
#include "step/optim/gpu_updater.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "device/fake_gpu.hpp"
#include "lockstep/error.hpp"
#include "optim/checked_update_kernels.hpp"
#include "optim/updater_bench.hpp"

namespace lockstep::optim {

namespace {

using Int = std::int64_t;

struct FakeBench : UpdaterBench {
  using UpdaterBench::UpdaterBench;
  Result on_fake(const OptimizerOptions& options, double clip_norm, const SumsScaling& scaling = {}) {
    device::FakeGpu gpu;
    Result result = on_gpu(gpu, std::make_unique<CheckedUpdateKernels>(), options, clip_norm, scaling,
                           [&](GpuUpdater& updater) { expect_copies(updater); });
    EXPECT_EQ(gpu.blocks_alive(), 0U);
    return result;
  }
};

}  // namespace

TEST(GpuUpdater, HasTheBitsOfTheCpusForEachOptimizerWithClippingAndWithout) {
  const std::vector<OptimizerOptions> all = {sgd(0, false, 0.1),
                                             sgd(0.9, true, 0.1),
                                             sgd(0.9, false, 0.1, true),
                                             decaying("adam"),
                                             decaying("adamw"),
                                             decaying("nadam"),
                                             decaying("lion"),
                                             decaying("adagrad"),
                                             decaying("rmsprop"),
                                             rmsprop(0.9, false),
                                             rmsprop(0, true),
                                             rmsprop(0.9, true),
                                             decaying("lamb"),
                                             lars(0),
                                             lars(0.9),
                                             muon(false),
                                             adafactor(false),
                                             averaged(sgd(0.9)),
                                             averaged(decaying("lamb")),
                                             averaged(muon(true)),
                                             averaged(adafactor(true))};
  for (const OptimizerOptions& options : all) {
    for (const double clip_norm : {0.0, 0.5, 1e9}) {
      FakeBench bench;
      const auto expected = bench.on_host(options, clip_norm), found = bench.on_fake(options, clip_norm);
      EXPECT_GT(expected.values.size(), 10'000U);
      EXPECT_TRUE(found == expected) << text_of(options) << ", clip_norm " << clip_norm;
      EXPECT_EQ(expected.updates.back().norm.has_value(), clip_norm > 0);
    }
  }
}

TEST(GpuUpdater, UpdatesGroupsOfParametersAsTheCpuDoes) {
  for (const OptimizerOptions& plain : {sgd(0.9, true, 0.1), decaying("adamw"), rmsprop(0, true), decaying("lamb"),
                                        lars(0.9), muon(true), adafactor(false)}) {
    OptimizerOptions options = plain;
    options.groups = {{.match = {"twice.*", "batch_norm1.bias"}, .rate = 10, .weight_decay = 0.5},
                      {.match = {"*.bias"}, .rate = 0.25},
                      {.match = {"conv1.weight"}, .weight_decay = 0}};
    for (const double clip_norm : {0.0, 0.5}) {
      FakeBench bench;
      const auto expected = bench.on_host(options, clip_norm), found = bench.on_fake(options, clip_norm);
      EXPECT_TRUE(found == expected) << text_of(options) << ", clip_norm " << clip_norm;
      EXPECT_FALSE(bench.on_host(plain, clip_norm) == expected) << "groups change something";
    }
  }
}

TEST(GpuUpdater, FreezesGroupsAsTheCpuDoes) {
  for (const OptimizerOptions& plain :
       {sgd(0.9, true, 0.1), decaying("adamw"), decaying("nadam"), rmsprop(0.9, true), decaying("lamb"), lars(0.9),
        muon(true), averaged(decaying("adamw")), averaged(muon(false)), adafactor(false)}) {
    OptimizerOptions options = plain;
    options.groups = {{.match = {"twice.*", "conv1.weight"}, .freeze_until = {2, false}},
                      {.match = {"linear1.*"}, .rate = 3, .freeze_until = {1, false}}};
    for (const double clip_norm : {0.0, 0.5}) {
      FakeBench bench;
      const auto expected = bench.on_host(options, clip_norm), found = bench.on_fake(options, clip_norm);
      EXPECT_TRUE(found == expected) << text_of(options) << ", clip_norm " << clip_norm;
      EXPECT_FALSE(bench.on_host(plain, clip_norm) == expected);
    }
    FakeBench narrow(DType::bf16);
    EXPECT_TRUE(narrow.on_fake(options, 0.5) == narrow.on_host(options, 0.5)) << text_of(options);
  }
}

// Infinite gradients of what is frozen are none; what is skipped is no update, so the group waits for another.
TEST(GpuUpdater, SkipsNothingForFrozenGroupsAndCountsUpdatesForThem) {
  OptimizerOptions options = decaying("adamw");
  for (const auto& [until, skipped] : {std::pair{1, 0}, {2, 1}}) {
    options.groups = {
        {.match = {skipped == 0 ? "*" : "linear1.*"}, .freeze_until = {static_cast<double>(until), false}}};
    FakeBench bench;
    const auto never = bench.on_host(options, 0.5);
    const SumsScaling scaling{true, 4096, skipped, std::numeric_limits<float>::infinity()};
    const auto expected = bench.on_host(options, 0.5, scaling), found = bench.on_fake(options, 0.5, scaling);
    EXPECT_TRUE(found == expected) << until;
    EXPECT_EQ(expected.updates.size(), static_cast<std::size_t>(kUpdaterSteps + skipped));
    EXPECT_TRUE(expected.values == never.values) << until;
  }
}

// A group of everything is the same as other settings of the optimizer and another rate.
TEST(ParameterGroups, OfEverythingAreOtherSettings) {
  for (const std::string optimizer : {"sgd", "adamw"}) {
    UpdaterBench bench;
    OptimizerOptions grouped{optimizer, Attributes({{"weight_decay", 0.1}})};
    grouped.groups = {{.match = {"*"}, .weight_decay = 0.3}};
    const OptimizerOptions plain{optimizer, Attributes({{"weight_decay", 0.3}, {"decay_all", true}})};
    EXPECT_TRUE(bench.on_host(grouped, 0.5) == bench.on_host(plain, 0.5)) << optimizer;
  }
}

TEST(ParameterGroups, WeightDecayNeedsAnOptimizerThatHasOne) {
  OptimizerOptions options{"own", {}};
  options.groups = {{.match = {"*"}, .weight_decay = 0.3}};
  try {
    const ParameterGroups groups(options, {}, {}, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(), "weight_decay: the optimizer 'own' has none; leave it out of the group");
  }
}

// Muon's products are longer than a block of fused terms. Adafactor's matrices have more tiles than a thread reads
// ahead, and rows that begin at multiples of 16 bytes, or with a width of 70 do not.
TEST(GpuUpdater, MakesStepsOfLongMatricesAsTheCpuDoes) {
  FakeBench bench(DType::f32, 300), wide(DType::f32, 600);
  EXPECT_TRUE(bench.on_fake(muon(true), 0.5) == bench.on_host(muon(true), 0.5));
  for (const double clip_norm : {0.0, 0.5}) {
    EXPECT_TRUE(wide.on_fake(adafactor(true), clip_norm) == wide.on_host(adafactor(true), clip_norm));
  }
}

// The largest tensor alone has 88 chunks: more than one block of them.
TEST(GpuUpdater, AddsTheSquaresOfManyChunksAsTheCpuDoes) {
  constexpr Int kWidth = 600, kStatistics = 2 * kWidth;
  for (const OptimizerOptions& trusted : {decaying("lamb"), lars(0.9)}) {
    FakeBench bench(DType::f32, kWidth);
    EXPECT_TRUE(bench.on_fake(trusted, 0.5) == bench.on_host(trusted, 0.5)) << text_of(trusted);
  }
  const OptimizerOptions options = sgd(0);
  for (const double clip_norm : {0.5, 1e9}) {
    FakeBench bench(DType::f32, kWidth);
    const auto expected = bench.on_host(options, clip_norm), found = bench.on_fake(options, clip_norm);
    EXPECT_TRUE(found == expected) << "clip_norm " << clip_norm;
    if (clip_norm < 1) continue;
    double squares = 0;  // of the gradient of step 1, which is drawn first; the same number of parameters follows
    const auto gradient = (std::ssize(expected.values) - kStatistics) / 2;
    for (Int i = 0; i < gradient; ++i) {
      const double value = expected.values[static_cast<std::size_t>(i)];
      squares += value * value;
    }
    EXPECT_GT(gradient, kWidth * kWidth);
    ASSERT_TRUE(expected.updates[1].norm);
    EXPECT_NEAR(*expected.updates[1].norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));
  }
}

TEST(GpuUpdater, SkipsOnTheGpuWhatTheCpuSkips) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<OptimizerOptions> all = {
      sgd(0), sgd(0.9), decaying("adamw"), decaying("lamb"), muon(true), averaged(lars(0.9)), adafactor(false)};
  for (const OptimizerOptions& options : all) {
    for (const double clip_norm : {0.0, 0.5}) {
      FakeBench bench;
      const auto never = bench.on_host(options, clip_norm);
      for (const float what : {infinity, -infinity, nan}) {
        const SumsScaling scaling{true, 4096, 1, what};
        const auto expected = bench.on_host(options, clip_norm, scaling);
        const auto found = bench.on_fake(options, clip_norm, scaling);
        EXPECT_TRUE(found == expected) << text_of(options) << ", clip_norm " << clip_norm << ", " << what;
        ASSERT_EQ(expected.updates.size(), static_cast<std::size_t>(kUpdaterSteps) + 1);
        EXPECT_EQ(expected.updates[1], (UpdateResult{.norm = {}, .skipped = true}));
        // A skipped step has no effect at all, and a power of two changes no bit.
        EXPECT_TRUE(expected.values == never.values);
      }
    }
  }
}

TEST(GpuUpdater, RefusesAnOptimizerThatOnlyCpusCompute) {
  FakeBench bench;
  OptimizerDef own;
  own.name = "own";
  own.update = [](const Attributes&, const UpdateStep&) { return ParameterUpdate(); };
  bench.optimizers.add(own);
  try {
    (void)bench.on_fake({"own", {}}, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(),
                 "job.optimizer: expected an optimizer that GPUs can compute, found 'own'; set device: cpu");
  }
}

TEST(GpuUpdater, RenewsTheCopiesThatProductsReadWithTheirParameters) {
  const std::vector<OptimizerOptions> all = {sgd(0),     sgd(0.9),        decaying("adamw"), averaged(decaying("lamb")),
                                             muon(true), adafactor(false)};
  for (const OptimizerOptions& options : all) {
    for (const DType precision : {DType::bf16, DType::f16}) {
      FakeBench bench(precision);
      EXPECT_TRUE(bench.on_fake(options, 0.5) == bench.on_host(options, 0.5)) << text_of(options);
    }
  }
}

}  // namespace lockstep::optim
