// The executor on small nets: after the first steps a step allocates nothing (the one exception is oneDNN's own
// bookkeeping, a few hundred bytes per call), and a worker's errors reach the caller.
#include "step/exec/executor.hpp"

#include <gtest/gtest.h>
#include <omp.h>
#include <array>

#include <algorithm>
#include <limits>

#include "allocation_counter.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"
#include "step/exec/cpu_device.hpp"

namespace lockstep::exec {

namespace {

constexpr std::int64_t kBatch = 4;
constexpr int kMicroBatches = 8;

class FixedSource final : public InputSource {
 public:
  FixedSource() : image_({DType::f32, {kBatch, 12, 12, 1}}), label_({DType::i32, {kBatch}}) {
    for (std::size_t i = 0; i < image_.as<float>().size(); ++i)
      image_.as<float>()[i] = static_cast<float>(i % 7) - 3.0F;
    for (std::size_t i = 0; i < label_.as<std::int32_t>().size(); ++i)
      label_.as<std::int32_t>()[i] = static_cast<int>(i);
  }
  void get(std::uint64_t /*step*/, int micro_batch, MicroBatchInputs& inputs) override {
    if (micro_batch == fail_at) throw std::runtime_error("no such micro-batch");
    inputs.tensors.clear();
    inputs.tensors.push_back(image_.bytes());
    inputs.tensors.push_back(label_.bytes());
    inputs.valid = kBatch;
  }
  void release(std::uint64_t /*step*/, int /*micro-batch*/) override {}
  int fail_at = -1;

 private:
  Tensor image_, label_;
};

// Uses only kernels of our own.
Graph own_net(const OpRegistry& ops) {
  GraphBuilder b(ops, kBatch);
  ValueId x = b.input("image", {DType::f32, {12, 12, 1}});
  const ValueId label = b.input("label", {DType::i32, {}});
  x = b.apply("relu", {b.apply("batch_norm", {b.apply("concat", {x, x, x})})});
  x = b.apply("add", {x, b.apply("dropout", {x}, Attributes({{"rate", 0.5}}))});
  x = b.apply("global_pool", {b.apply("max_pool", {x}, Attributes({{"kernel", std::int64_t{2}}}))});
  b.graph().output = x;
  b.graph().loss = b.add_node("mean_squared_error", {x, x}, {}, "loss");
  (void)label;
  return std::move(b.graph());
}

Graph small_net(const OpRegistry& ops) {
  GraphBuilder b(ops, kBatch);
  ValueId x = b.input("image", {DType::f32, {12, 12, 1}});
  const ValueId label = b.input("label", {DType::i32, {}});
  x = b.apply("conv", {x}, Attributes({{"filters", std::int64_t{8}}, {"kernel", std::int64_t{3}}}));
  x = b.apply("relu", {b.apply("batch_norm", {x})});
  x = b.apply("add", {x, b.apply("dropout", {x}, Attributes({{"rate", 0.5}}))});
  x = b.apply("flatten", {b.apply("max_pool", {x}, Attributes({{"kernel", std::int64_t{2}}}))});
  x = b.apply("linear", {x}, Attributes({{"features", std::int64_t{10}}}));
  b.graph().output = x;
  b.graph().loss = b.add_node("cross_entropy", {x, label}, {}, "loss");
  b.graph().metrics.push_back(b.add_node("accuracy", {x, label}, {}, "metric.accuracy"));
  return std::move(b.graph());
}

// Many parameters, small activations.
Graph deep_net(const OpRegistry& ops) {
  GraphBuilder b(ops, kBatch);
  ValueId x = b.apply("flatten", {b.input("image", {DType::f32, {12, 12, 1}})});
  const ValueId label = b.input("label", {DType::i32, {}});
  for (int layer = 0; layer < 16; ++layer) {
    x = b.apply("relu", {b.apply("linear", {x}, Attributes({{"features", std::int64_t{128}}}))});
  }
  b.graph().output = x;
  b.graph().loss = b.add_node("cross_entropy", {x, label}, {}, "loss");
  return std::move(b.graph());
}

struct Bench {
  explicit Bench(int workers, Graph (*make)(const OpRegistry&) = small_net) : pool(workers) {
    ops::add_built_in(registry);
    graph = make(registry);
    executor = std::make_unique<Executor>(graph, Mode::training, device, pool, 1);
    buckets = gradient_buckets(executor->program(), 4096, kMicroBatches);
    reducer = comm::make_reducer(*communicator, buckets);
    parameters = TensorBlock(graph, graph.parameters);
    states = TensorBlock(graph, graph.states);
    executor->use({parameters, states});
    assignment = comm::place_micro_batches(comm::equal_counts(kMicroBatches, 1));
  }
  /// Returns the allocations made after begin_step(), which may plan.
  Allocations step(std::uint64_t number) {
    reducer->begin_step(number, assignment);
    const Allocations before = allocations();
    (void)executor->train({number, assignment.micro_batches_of_rank[0]}, source, buckets, *reducer);
    reducer->finish();
    const Allocations after = allocations();
    return {.all = after.all - before.all, .large = after.large - before.large};
  }
  CpuDevice device;
  WorkerPool pool;
  OpRegistry registry;
  Graph graph;
  std::unique_ptr<Communicator> communicator = make_single_communicator();
  std::unique_ptr<Executor> executor;
  comm::GradientBuckets buckets;
  std::unique_ptr<comm::GradientReducer> reducer;
  TensorBlock parameters, states;
  comm::MicroBatchAssignment assignment;
  FixedSource source;
};

}  // namespace

TEST(Executor, StepsAllocateNothingAfterTheFirst) {
  Bench bench(1, own_net);
  EXPECT_GT(bench.step(0).all, 0U) << "the count must be able to fail";
  bench.step(1);
  for (std::uint64_t step = 2; step < 10; ++step) EXPECT_EQ(bench.step(step).all, 0U) << step;
}

// One worker: with several, one may get its first micro-batch, and create its kernels, in a later step.
TEST(Executor, TensorsAreNeverAllocatedInAStep) {
  Bench bench(1);
  EXPECT_GT(bench.step(0).large, 0U) << "the count must be able to fail";
  bench.step(1);
  for (std::uint64_t step = 2; step < 10; ++step) EXPECT_EQ(bench.step(step).large, 0U) << step;
}

TEST(Executor, TryingMicroBatchesTakesNoWholeGradientAWorker) {
  constexpr int kWorkers = 8;
  Bench bench(kWorkers, deep_net);
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (int round = 0; round <= kWorkers;
       ++round) {  // a worker makes its kernels in one of them, whenever it has a task
    const std::size_t before = allocations().bytes;
    EXPECT_EQ(bench.executor->try_micro_batches(4 * kWorkers, bench.buckets).size(), std::size_t{4 * kWorkers});
    least = std::min(least, allocations().bytes - before);
  }
  const std::size_t gradient = static_cast<std::size_t>(bench.buckets.elements()) * sizeof(float);
  EXPECT_LT(least, gradient * kWorkers / 4);
}

TEST(Executor, ScalarsAreSumsOverTheMicroBatch) {
  Bench bench(2);
  bench.reducer->begin_step(0, bench.assignment);
  const auto& results = bench.executor->train({0, bench.assignment.micro_batches_of_rank[0]}, bench.source,
                                              bench.buckets, *bench.reducer);
  bench.reducer->finish();
  ASSERT_EQ(results.size(), 8u);
  for (const auto& micro_batch : results) {
    EXPECT_EQ(micro_batch.count, 4.0);
    EXPECT_NEAR(micro_batch.loss, 4 * 2.302585, 1e-4);  // all parameters are 0: ln 10 per sample
    ASSERT_EQ(micro_batch.metrics.size(), 2u);          // a value and a count
    EXPECT_EQ(micro_batch.metrics[1], 4.0);
  }
}

// A power of two passes through every layer as a change of exponents.
TEST(Executor, AScaledLossScalesEveryGradientAndNothingElse) {
  Bench bench(2);
  for (std::size_t i = 0; i < bench.parameters.size(); ++i) {
    std::int64_t at = 0;
    for (float& value : bench.parameters.at(i)) value = 0.01F * static_cast<float>(at++ % 13 - 6);
  }
  const auto reduced = [&](float scale) {
    bench.reducer->begin_step(0, bench.assignment);
    const auto& results = bench.executor->train({0, bench.assignment.micro_batches_of_rank[0], scale}, bench.source,
                                                bench.buckets, *bench.reducer);
    bench.reducer->finish();
    std::vector<std::vector<float>> slots;
    for (const comm::GradientBuckets::Slot& place : bench.buckets.slots) {
      const float* first = bench.reducer->reduced(place.bucket).data() + place.offset;
      const auto& slot = bench.executor->program().slots[slots.size()];
      slots.emplace_back(first, first + slot.elements);
    }
    return std::pair{slots, results.front().loss};
  };
  const auto [once, loss] = reduced(1);
  const auto [scaled, scaled_loss] = reduced(1024);
  EXPECT_EQ(loss, scaled_loss);
  int gradients = 0;
  for (std::size_t s = 0; s < once.size(); ++s) {
    const bool is_gradient = bench.executor->program().slots[s].kind == Slot::Kind::gradient;
    for (std::size_t i = 0; i < once[s].size(); ++i) {
      ASSERT_EQ(scaled[s][i], is_gradient ? 1024 * once[s][i] : once[s][i]) << "slot " << s;
      gradients += is_gradient && once[s][i] != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(gradients, 100);
}

TEST(Executor, AnErrorOfAWorkerArrives) {
  Bench bench(2);
  bench.source.fail_at = 5;
  bench.reducer->begin_step(0, bench.assignment);
  EXPECT_THROW((void)bench.executor->train({0, bench.assignment.micro_batches_of_rank[0]}, bench.source, bench.buckets,
                                           *bench.reducer),
               std::runtime_error);
}

TEST(Executor, AfterAnErrorOtherMicroBatchesCanBePredicted) {
  Bench bench(1);
  Executor executor(bench.graph, Mode::inference, bench.device, bench.pool, 1);
  executor.use({bench.parameters, bench.states});
  const std::array all = {0, 1, 2, 3};
  std::vector<int> predicted;
  const auto predict = [&] {
    executor.evaluate({.micro_batches = all}, bench.source,
                      [&](const EvaluatedMicroBatch& micro_batch) { predicted.push_back(micro_batch.micro_batch); });
  };
  bench.source.fail_at = 1;
  EXPECT_THROW(predict(), std::runtime_error);
  EXPECT_EQ(predicted, std::vector{0});
  bench.source.fail_at = -1;
  predicted.clear();
  predict();
  EXPECT_EQ(predicted, std::vector(all.begin(), all.end()));
}

// oneDNN's sums depend on the number of its threads.
TEST(WorkerPool, ComputesWithOneThreadWhoeverCalls) {
  WorkerPool pool(2);
  std::thread([&] {
    omp_set_num_threads(2);
    pool.run(8, [](int, int) { EXPECT_EQ(omp_get_max_threads(), 1); });
  }).join();
}

TEST(WorkerPool, EveryTaskRunsOnce) {
  for (const int workers : {1, 2, 5}) {
    WorkerPool pool(workers);
    std::vector<std::atomic<int>> counts(100);
    for (int round = 0; round < 20; ++round) {
      pool.run(100, [&](int worker, int task) {
        EXPECT_LT(worker, workers);
        ++counts[static_cast<std::size_t>(task)];
      });
    }
    for (const auto& count : counts) EXPECT_EQ(count, 20);
  }
}

}  // namespace lockstep::exec
