// The update on a GPU: its kernels' bodies over their whole grids have the bits of the CPU's, through several steps,
// and a fake finds every access that nothing orders.
#include "train/gpu_updater.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/fake_gpu.hpp"
#include "core/narrow.hpp"
#include "core/philox.hpp"
#include "graph/precision.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"
#include "train/checked_update_kernels.hpp"
#include "train/cpu_updater.hpp"

namespace lockstep::train {

namespace {

using backend::FakeGpu;
using Int = std::int64_t;

constexpr int kShards = 3, kSteps = 3;

using backend::bytes_of;

// Every kind of parameter: used twice, without decay, longer than a chunk, shorter than a part; and statistics.
Graph net(const OpRegistry& ops, Int width) {
  GraphBuilder b(ops, 2);
  ValueId x = b.input("image", {DType::f32, {width}});
  const ValueId label = b.input("label", {DType::i32, {}});
  x = b.apply("linear", {x}, Attributes({{"features", width}}), "twice");
  x = b.apply("batch_norm", {x});
  x = b.apply("linear", {x}, Attributes({{"features", width}, {"tied", std::string("twice")}}));
  x = b.apply("linear", {b.apply("relu", {x})}, Attributes({{"features", Int{5}}}));
  b.graph().output = x;
  b.graph().loss = b.add_node("cross_entropy", {x, label}, {}, "loss");
  return std::move(b.graph());
}

/// Sums of gradients are multiplied by the scale, and one of them is spoiled in one of the steps.
struct Scaling {
  bool on = false;
  float scale = 1;
  int spoiled = -1;
  float what = 0;
};

/// A run of updates from made-up sums, on the host or on a fake.
class Bench {
 public:
  explicit Bench(DType precision = DType::f32, Int width = 70) : precision_(precision) {
    ops::add_built_in(registry_);
    graph_ = net(registry_, width);
    set_precision(graph_, precision);
    executor_ = std::make_unique<exec::Executor>(graph_, Mode::training, exec::cpu_device(), pool_, 1);
    layout_ = exec::make_gradient_layout(executor_->program(), 8192);
  }

  struct Result {
    std::vector<float> values;
    std::vector<UpdateResult> updates;
    bool operator==(const Result& other) const {
      return updates == other.updates && values.size() == other.values.size() &&
             std::memcmp(values.data(), other.values.data(), values.size() * sizeof(float)) == 0;
    }
  };

  Result on_host(const OptimizerOptions& options, double clip_norm, const Scaling& scaling = {}) {
    const auto exchange = comm::make_exchange(*communicator_, exec::exchange_layout(layout_, kShards));
    CpuUpdater updater(setup(options, clip_norm, scaling), *exchange, pool_);
    return run(updater, *exchange, scaling, [](const comm::Leaf& leaf, const std::vector<float>& values) {
      for (std::size_t i = 0; i < values.size(); ++i)
        leaf.memory[i] = leaf.add ? leaf.memory[i] + values[i] : values[i];
    });
  }

  Result on_fake(const OptimizerOptions& options, double clip_norm, const Scaling& scaling = {}) {
    FakeGpu gpu;
    Result result;
    {
      const auto worker = gpu.make_stream();
      comm::GpuExchange exchange(*communicator_, exec::exchange_layout(layout_, kShards), {}, gpu, nullptr);
      GpuUpdater updater(setup(options, clip_norm, scaling), gpu, exchange, std::make_unique<CheckedUpdateKernels>());
      result = run(updater, exchange, scaling, [&](const comm::Leaf& leaf, const std::vector<float>& values) {
        gpu.wait(worker, leaf.free);
        gpu.kernel_writes(worker, bytes_of(leaf.memory), values.size() * sizeof(float));
        std::copy(values.begin(), values.end(), leaf.memory);
        gpu.record(leaf.written, worker);
      });
      expect_copies(updater);
    }
    EXPECT_EQ(gpu.blocks_alive(), 0U);
    return result;
  }

 private:
  [[nodiscard]] UpdaterSetup setup(const OptimizerOptions& options, double clip_norm, const Scaling& scaling) const {
    return {graph_, executor_->program(), layout_, options, clip_norm, kShards, scaling.on};
  }

  template <class Write>
  Result run(Updater& updater, comm::Exchange& exchange, const Scaling& scaling, const Write& write) {
    Model model = updater.make_model(7);
    updater.begin(model);
    Result result;
    const auto assignment = comm::place_shards(comm::equal_counts(kShards, 1));
    std::int64_t made = 0;
    for (int step = 0; made < kSteps; ++step) {
      const bool spoiled = step == scaling.spoiled;
      exchange.begin_step(static_cast<std::uint64_t>(step), assignment);
      for (int shard = 0; shard < kShards; ++shard) {
        for (int b = 0; b < static_cast<int>(layout_.buckets.size()); ++b) {
          write(exchange.leaf(shard, b), gradient(static_cast<int>(made), shard, b, scaling, spoiled));
          exchange.ready(shard, b);
        }
      }
      exchange.finish();
      result.updates.push_back(
          updater.update(model, 6, {.learning_rate = 0.1, .step = step, .update = made, .loss_scale = scaling.scale}));
      if (result.updates.back().left_out) continue;
      ++made;
      if (made == 2) take(updater.gradient(), result);
    }
    updater.fetch(model);
    take(model.parameters, result);
    take(model.states, result);
    for (const auto& state : model.optimizer) take(state, result);
    return result;
  }

  static void take(const exec::TensorBlock& block, Result& result) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      result.values.insert(result.values.end(), block.at(i).begin(), block.at(i).end());
    }
  }

  /// Of all matrices, in the products' type, as the last update has left them.
  void expect_copies(GpuUpdater& updater) const {
    Model model = updater.make_model(7);
    updater.fetch(model);
    const auto on_gpu = updater.values(model).on_gpu;
    for (std::size_t i = 0; i < model.parameters.size(); ++i) {
      const bool copied = is_narrow(precision_) && model.parameters.shape(i).size() > 1;
      const std::byte* const copy = on_gpu->copies().at(i);
      ASSERT_EQ(copy != nullptr, copied) << model.parameters.name(i);
      if (!copied) continue;
      std::vector<std::uint16_t> expected(model.parameters.at(i).size());
      narrow(precision_, model.parameters.at(i).data(), expected.data(), std::ssize(expected));
      EXPECT_EQ(std::memcmp(copy, expected.data(), expected.size() * sizeof(std::uint16_t)), 0)
          << model.parameters.name(i);
    }
  }

  [[nodiscard]] std::vector<float> gradient(int step, int shard, int bucket, const Scaling& scaling,
                                            bool spoiled) const {
    RandomStream random(mix(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(shard)),
                        static_cast<std::uint64_t>(bucket));
    std::vector<float> values(static_cast<std::size_t>(layout_.buckets[static_cast<std::size_t>(bucket)].elements));
    for (float& value : values) value = random.between(-1, 1);
    for (std::size_t s = 0; s < layout_.slots.size(); ++s) {
      const Slot& slot = executor_->program().slots[s];
      if (layout_.slots[s].bucket != bucket || slot.kind != Slot::Kind::gradient) continue;
      float* const first = values.data() + layout_.slots[s].offset;
      for (std::int64_t i = 0; i < slot.elements; ++i) first[i] *= scaling.scale;
      if (spoiled && shard == 1 && bucket == 1) first[slot.elements / 2] = scaling.what;
    }
    return values;
  }

  DType precision_;
  OpRegistry registry_;
  Graph graph_;
  exec::WorkerPool pool_{1};
  std::unique_ptr<exec::Executor> executor_;
  exec::GradientLayout layout_;
  std::unique_ptr<Communicator> communicator_ = make_single_communicator();
};

}  // namespace

TEST(GpuUpdater, HasTheBitsOfTheCpusForEachOptimizerWithClippingAndWithout) {
  const std::vector<OptimizerOptions> all = {
      {.kind = "sgd", .momentum = 0, .weight_decay = 0.1},
      {.kind = "sgd", .momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
      {.kind = "sgd", .momentum = 0.9, .weight_decay = 0.1, .decay_all = true},
      {.kind = "adam", .weight_decay = 0.1},
      {.kind = "adamw", .weight_decay = 0.1},
  };
  for (const OptimizerOptions& options : all) {
    for (const double clip_norm : {0.0, 0.5, 1e9}) {
      Bench bench;
      const auto expected = bench.on_host(options, clip_norm), found = bench.on_fake(options, clip_norm);
      EXPECT_GT(expected.values.size(), 10'000U);
      EXPECT_TRUE(found == expected) << options.kind << ", momentum " << options.momentum << ", clip_norm "
                                     << clip_norm;
      EXPECT_EQ(expected.updates.back().norm > 0, clip_norm > 0);
    }
  }
}

// 88 chunks of the largest tensor alone are more than one block of them.
TEST(GpuUpdater, AddsTheSquaresOfManyChunksAsTheCpuDoes) {
  constexpr Int kWidth = 600, kStatistics = 2 * kWidth;
  const OptimizerOptions options{.kind = "sgd", .momentum = 0};
  for (const double clip_norm : {0.5, 1e9}) {
    Bench bench(DType::f32, kWidth);
    const auto expected = bench.on_host(options, clip_norm), found = bench.on_fake(options, clip_norm);
    EXPECT_TRUE(found == expected) << "clip_norm " << clip_norm;
    if (clip_norm < 1) continue;
    double squares = 0;  // of the gradient, which is taken first, of step 1; then come as many parameters
    const auto gradient = (std::ssize(expected.values) - kStatistics) / 2;
    for (Int i = 0; i < gradient; ++i) {
      const double value = expected.values[static_cast<std::size_t>(i)];
      squares += value * value;
    }
    EXPECT_GT(gradient, kWidth * kWidth);
    EXPECT_NEAR(expected.updates[1].norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));
  }
}

TEST(GpuUpdater, LeavesOutOnTheGpuWhatTheCpuLeavesOut) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<OptimizerOptions> all = {
      {.kind = "sgd", .momentum = 0}, {.kind = "sgd", .momentum = 0.9}, {.kind = "adamw", .weight_decay = 0.1}};
  for (const OptimizerOptions& options : all) {
    for (const double clip_norm : {0.0, 0.5}) {
      Bench bench;
      const auto never = bench.on_host(options, clip_norm);
      for (const float what : {infinity, -infinity, nan}) {
        const Scaling scaling{true, 4096, 1, what};
        const auto expected = bench.on_host(options, clip_norm, scaling);
        const auto found = bench.on_fake(options, clip_norm, scaling);
        EXPECT_TRUE(found == expected) << options.kind << ", clip_norm " << clip_norm << ", " << what;
        ASSERT_EQ(expected.updates.size(), static_cast<std::size_t>(kSteps) + 1);
        EXPECT_EQ(expected.updates[1], (UpdateResult{.norm = 0, .left_out = true}));
        // A step that is left out might as well not have been, and a power of two changes no bit.
        EXPECT_TRUE(expected.values == never.values);
      }
    }
  }
}

TEST(GpuUpdater, RenewsTheCopiesThatProductsReadWithTheirParameters) {
  const std::vector<OptimizerOptions> all = {
      {.kind = "sgd", .momentum = 0}, {.kind = "sgd", .momentum = 0.9}, {.kind = "adamw", .weight_decay = 0.1}};
  for (const OptimizerOptions& options : all) {
    for (const DType precision : {DType::bf16, DType::f16}) {
      Bench bench(precision);
      EXPECT_TRUE(bench.on_fake(options, 0.5) == bench.on_host(options, 0.5)) << options.kind;
    }
  }
}

}  // namespace lockstep::train
