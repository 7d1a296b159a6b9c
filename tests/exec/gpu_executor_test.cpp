// The executor on a FakeGpu: the CPU's bits, the order of every access, and the errors of a GPU that is too small.
#include <gtest/gtest.h>
#include <array>

#include <cstdlib>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "device/fake_gpu.hpp"
#include "exec/checked_kernel.hpp"
#include "graph/precision.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/random.hpp"
#include "ops/registry.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/exec/device.hpp"
#include "step/exec/executor.hpp"
#include "step/exec/gpu_device.hpp"
#include "step/exec/memory_needs.hpp"
#include "step/exec/micro_batch_runner.hpp"

namespace lockstep::exec {

namespace {

using Int = std::int64_t;

// A CPU that multiplies bfloat16 natively computes other bits than upcasts around float32 kernels, which the fake uses.
const int kUpcast = setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE", 0);

constexpr Int kGpuBatch = 4;
constexpr int kGpuMicroBatches = 6;
constexpr Int kSmallBuckets = 4096, kOneBucket = Int{1} << 30;

/// Different samples in each micro-batch of each step.
class RandomSource final : public InputSource {
 public:
  void get(std::uint64_t step, int micro_batch, MicroBatchInputs& inputs) override {
    Tensor& image = images_[static_cast<std::size_t>(micro_batch)];
    Tensor& label = labels_[static_cast<std::size_t>(micro_batch)];
    RandomStream random(mix(step, static_cast<std::uint64_t>(micro_batch)), 0);
    for (float& value : image.as<float>()) value = random.between(-1, 1);
    for (std::int32_t& value : label.as<std::int32_t>()) value = static_cast<std::int32_t>(random.below(10));
    inputs.tensors = {image.bytes(), label.bytes()};
    inputs.valid = micro_batch == kGpuMicroBatches - 1 ? kGpuBatch - 1 : kGpuBatch;
  }
  void release(std::uint64_t /*step*/, int micro_batch) override {
    // released: the executor must not read it any more
    for (float& value : images_[static_cast<std::size_t>(micro_batch)].as<float>()) value = 1e30F;
  }

 private:
  static std::vector<Tensor> tensors(const TensorSpec& spec) {
    std::vector<Tensor> list;
    for (int i = 0; i < kGpuMicroBatches; ++i) list.emplace_back(spec);
    return list;
  }
  std::vector<Tensor> images_ = tensors({DType::f32, {kGpuBatch, 12, 12, 2}});
  std::vector<Tensor> labels_ = tensors({DType::i32, {kGpuBatch}});
};

/// What a model is compiled for: training and evaluation, or predicting.
enum class End : std::uint8_t { loss, prediction };

Graph ends_with(GraphBuilder& b, ValueId x, ValueId label, End end) {
  b.graph().output = x;
  if (end == End::loss) {
    b.graph().loss = b.add_node("cross_entropy", {x, label}, {}, "loss");
    b.graph().metrics.push_back(b.add_node("accuracy", {x, label}, {}, "metric.accuracy"));
  }
  return std::move(b.graph());
}

// A residual net with every kind of operand: states, saved tensors, two uses of a value, dropout.
Graph net(const OpRegistry& ops, End end) {
  GraphBuilder b(ops, kGpuBatch);
  ValueId x = b.input("image", {DType::f32, {12, 12, 2}});
  const ValueId label = b.input("label", {DType::i32, {}});
  x = b.apply("conv", {x}, Attributes({{"filters", Int{8}}, {"kernel", Int{3}}}));
  x = b.apply("relu", {b.apply("batch_norm", {x})});
  x = b.apply("add", {x, b.apply("dropout", {x}, Attributes({{"rate", 0.5}}))});
  x = b.apply("flatten", {b.apply("max_pool", {x}, Attributes({{"kernel", Int{2}}}))});
  x = b.apply("linear", {x}, Attributes({{"features", Int{10}}}));
  return ends_with(b, x, label, end);
}

Graph net_with_frozen(const OpRegistry& ops, End end) {
  Graph graph = net(ops, end);
  for (const ValueId id : graph.parameters) {
    Value& value = graph.values[static_cast<std::size_t>(id)];
    value.frozen = value.name != "batch_norm1.weight" && value.name != "linear1.bias";
  }
  return graph;
}

// The feed-forward part of a transformer, twice.
Graph gelu_net(const OpRegistry& ops, End end) {
  GraphBuilder b(ops, kGpuBatch);
  ValueId x = b.input("image", {DType::f32, {12, 12, 2}});
  const ValueId label = b.input("label", {DType::i32, {}});
  x = b.apply("linear", {b.apply("flatten", {x})}, Attributes({{"features", Int{16}}}));
  for (int i = 0; i < 2; ++i) {
    ValueId y = b.apply("linear", {b.apply("layer_norm", {x})}, Attributes({{"features", Int{64}}}));
    y = b.apply("linear", {b.apply("gelu", {y})}, Attributes({{"features", Int{16}}}));
    x = b.apply("add", {x, y});
  }
  x = b.apply("linear", {x}, Attributes({{"features", Int{10}}}));
  return ends_with(b, x, label, end);
}

TensorBlock first_values(const Graph& graph, const std::vector<ValueId>& ids) {
  TensorBlock block(graph, ids);
  initialize(graph, ids, 1, block);
  return block;
}

struct Results {
  std::vector<double> scalars;
  std::vector<float> gradients, losses, predictions;
  bool operator==(const Results&) const = default;
};

/// Makes the inputs that the host would otherwise have copied.
class CopyFiller final : public InputFiller {
 public:
  CopyFiller(const Graph& graph, device::Gpu& gpu) : gpu_(gpu), bytes_(tensor_bytes(graph, nullptr)) {}
  [[nodiscard]] std::span<const std::size_t> parts() const override { return bytes_; }
  void fill(device::Gpu::Stream stream, std::span<const std::byte* const> parts,
            std::span<std::byte* const> inputs) const override {
    for (std::size_t i = 0; i < bytes_.size(); ++i) gpu_.copy(stream, inputs[i], parts[i], bytes_[i]);
  }

 private:
  device::Gpu& gpu_;
  std::vector<std::size_t> bytes_;
};

struct GpuBench {
  explicit GpuBench(DType of_layers = DType::f32, Graph (*of_model)(const OpRegistry&, End) = net)
      : precision(of_layers), model(of_model) {
    ops::add_built_in(registry);
  }

  GpuDevice gpu(bool graphs = true) {
    GpuSetup setup;
    setup.info = {DeviceKind::cuda, "a fake", "sm_00", "none"};
    setup.gpu = fake;
    setup.kernels = checked_kernels(registry);
    setup.graphs = graphs;
    setup.place = {"node7", 0, "GPU 0 (a fake)"};
    return GpuDevice(setup);
  }

  // Three training steps, each of which changes parameters, and an evaluation after each.
  Results run(const Device& device, int workers, Int bucket_bytes, bool filled = false,
              const ExecutorOptions& options = {}) {
    Graph graph = model(registry, End::loss), predicted = model(registry, End::prediction);
    set_precision(graph, precision);
    set_precision(predicted, precision);
    WorkerPool pool(workers);
    Executor training(graph, Mode::training, device, pool, 1, options),
        evaluation(graph, Mode::inference, device, pool, 1, options),
        prediction(predicted, Mode::inference, device, pool, 1, options);
    if (filled) {
      const auto filler = std::make_shared<const CopyFiller>(graph, *fake);
      for (Executor* executor : {&training, &evaluation, &prediction}) executor->fill_inputs(filler);
    }
    const comm::GradientBuckets buckets = gradient_buckets(training.program(), bucket_bytes, kGpuMicroBatches);
    const auto communicator = make_single_communicator();
    const auto reducer = device.make_reducer(*communicator, buckets, {});
    const TensorBlock parameters = first_values(graph, graph.parameters), states = first_values(graph, graph.states);
    training.use({parameters, states});
    EXPECT_EQ(training.try_micro_batches(3, buckets).size(), 3U);
    const auto assignment = comm::place_micro_batches(comm::equal_counts(kGpuMicroBatches, 1));
    RandomSource source;
    Results results;
    for (std::uint64_t step = 0; step < 3; ++step) {
      reducer->begin_step(step, assignment);
      for (const auto& micro_batch :
           training.train({step, assignment.micro_batches_of_rank[0]}, source, buckets, *reducer)) {
        results.scalars.insert(results.scalars.end(), {micro_batch.loss, micro_batch.count, micro_batch.metrics.at(0)});
      }
      reducer->finish();
      for (std::size_t s = 0; s < buckets.slots.size(); ++s) {
        const auto reduced = reducer->fetch(buckets.slots[s].bucket);
        const auto sum = std::span(reduced).subspan(static_cast<std::size_t>(buckets.slots[s].offset),
                                                    static_cast<std::size_t>(training.program().slots[s].elements));
        const FilterSizes order = order_of(training, training.program().slots[s]);
        for (Int i = 0; i < std::ssize(sum); ++i) {
          results.gradients.push_back(sum[static_cast<std::size_t>(order.place(i))]);
        }
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        for (float& value : parameters.at(i)) value *= 0.5F;
      }
      training.use({parameters, states});
      prediction.use({parameters, states});
      predict(prediction, source, results);
      evaluation.use({parameters, states});
      evaluate(evaluation, source, results);
    }
    return results;
  }

  static FilterSizes order_of(const Executor& executor, const Slot& slot) {
    if (slot.kind != Slot::Kind::gradient) return {};
    const Value& value = executor.graph().at(executor.graph().parameters[static_cast<std::size_t>(slot.target)]);
    return value.channels_last ? filter_sizes(value.spec.shape) : FilterSizes();
  }

  static constexpr std::array kAll = {0, 1, 2, 3, 4, 5};

  static void evaluate(Executor& evaluation, RandomSource& source, Results& results) {
    std::vector<float> losses(kGpuMicroBatches * kGpuBatch);
    evaluation.evaluate({.micro_batches = kAll}, source, [&](const EvaluatedMicroBatch& micro_batch) {
      std::copy_n(micro_batch.loss, kGpuBatch, losses.begin() + std::ptrdiff_t{kGpuBatch} * micro_batch.micro_batch);
      EXPECT_EQ(micro_batch.metrics.size(), 1U);
      EXPECT_EQ(micro_batch.prediction, nullptr) << "which nobody reads, and a GPU would have to copy";
    });
    results.losses.insert(results.losses.end(), losses.begin(), losses.end());
  }

  static void predict(Executor& prediction, RandomSource& source, Results& results) {
    constexpr std::size_t kRow = 10 * kGpuBatch;
    std::vector<float> predictions(kGpuMicroBatches * kRow);
    prediction.evaluate({.micro_batches = kAll}, source, [&](const EvaluatedMicroBatch& micro_batch) {
      std::copy_n(micro_batch.prediction, kRow,
                  predictions.begin() + static_cast<std::ptrdiff_t>(kRow) * micro_batch.micro_batch);
      EXPECT_EQ(micro_batch.loss, nullptr);
    });
    results.predictions.insert(results.predictions.end(), predictions.begin(), predictions.end());
  }

  DType precision;
  Graph (*model)(const OpRegistry&, End);
  OpRegistry registry;
  std::shared_ptr<device::FakeGpu> fake = std::make_shared<device::FakeGpu>();
};

}  // namespace

TEST(GpuExecutor, HasTheBitsOfItsKernelsHoweverManyWorkersAndBuckets) {
  const Results expected = GpuBench().run(CpuDevice(), 1, kOneBucket);
  EXPECT_GT(expected.gradients.size(), 1000U);
  for (const int workers : {1, 2}) {
    for (const Int bucket_bytes : {kSmallBuckets, kOneBucket}) {
      GpuBench bench;
      EXPECT_TRUE(bench.run(bench.gpu(), workers, bucket_bytes) == expected) << workers << " workers, " << bucket_bytes;
    }
  }
}

// Kernels are first launched one by one, then recorded, and then launched as one graph per bucket: with other samples,
// other dropout masks and, in evaluations, after the parameters' values have changed.
TEST(GpuExecutor, LaunchesGraphsWithTheBitsOfTheirKernels) {
  const Results expected = GpuBench().run(CpuDevice(), 1, kOneBucket);
  for (const Int bucket_bytes : {kSmallBuckets, kOneBucket}) {
    GpuBench with, without;
    EXPECT_TRUE(with.run(with.gpu(), 1, bucket_bytes) == expected);
    EXPECT_TRUE(without.run(without.gpu(false), 1, bucket_bytes) == expected);
    EXPECT_GT(with.fake->graphs_launched(), 20U);
    EXPECT_EQ(without.fake->graphs_launched(), 0U);
  }
}

TEST(GpuExecutor, TakesInputsThatAreMadeOnTheGpu) {
  const Results expected = GpuBench().run(CpuDevice(), 1, kOneBucket);
  for (const int workers : {1, 2}) {
    GpuBench bench;
    EXPECT_TRUE(bench.run(bench.gpu(), workers, kSmallBuckets, true) == expected) << workers;
  }
}

// Low-precision values are cast on the GPU, around kernels for float32, and weights are read from their low-precision
// copies.
TEST(GpuExecutor, HasTheBitsOfTheCpuInMixedPrecision) {
  const Results wide = GpuBench().run(CpuDevice(), 1, kOneBucket);
  const Results expected = GpuBench(DType::bf16).run(CpuDevice(), 1, kOneBucket);
  EXPECT_FALSE(expected == wide);
  for (const int workers : {1, 2}) {
    GpuBench bench(DType::bf16);
    EXPECT_TRUE(bench.run(bench.gpu(), workers, kSmallBuckets) == expected) << workers;
  }
}

// On GPUs gelu and its neighbouring linear layers become two ops, not three.
TEST(GpuExecutor, FusedGeluChangesNoBit) {
  const Results expected = GpuBench(DType::f32, gelu_net).run(CpuDevice(), 1, kOneBucket);
  for (const int workers : {1, 2}) {
    GpuBench bench(DType::f32, gelu_net);
    EXPECT_TRUE(bench.run(bench.gpu(), workers, kSmallBuckets) == expected) << workers;
  }
}

// In low precision the value in between is not rounded: other bits than with three ops, but the same in every run.
TEST(GpuExecutor, FusedGeluRoundsLessInMixedPrecision) {
  GpuBench first(DType::bf16, gelu_net);
  const Results expected = first.run(first.gpu(), 1, kOneBucket);
  EXPECT_FALSE(expected == GpuBench(DType::bf16, gelu_net).run(CpuDevice(), 1, kOneBucket));
  for (const int workers : {1, 2}) {
    GpuBench bench(DType::bf16, gelu_net);
    EXPECT_TRUE(bench.run(bench.gpu(), workers, kSmallBuckets) == expected) << workers;
  }
}

TEST(GpuExecutor, FusedGeluNeedsNoMoreMemory) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    GpuBench bench(precision, gelu_net);
    Graph graph = gelu_net(bench.registry, End::loss);
    set_precision(graph, precision);
    WorkerPool pool(1);
    const GpuDevice device = bench.gpu();
    const Executor fused(graph, Mode::training, device, pool, 1);
    const Executor apart(graph, Mode::training, device, pool, 1, {.lowered = false});
    EXPECT_LT(fused.program().instructions.size(), apart.program().instructions.size());
    EXPECT_LE(fused.program().arena_bytes, apart.program().arena_bytes) << name_of(precision);
  }
}

// The weights of convolutions then lie as on the host, in training and in evaluations.
TEST(GpuExecutor, LoweringChangesNoBit) {
  const Results expected = GpuBench().run(CpuDevice(), 1, kOneBucket);
  for (const int workers : {1, 2}) {
    GpuBench bench;
    EXPECT_TRUE(bench.run(bench.gpu(), workers, kSmallBuckets, false, {.lowered = false}) == expected) << workers;
  }
}

// Frozen: of a convolution, whose weight has channels last, and of a norm and a linear layer, with some of their own
// left.
TEST(GpuExecutor, FrozenParametersHaveNoGradientAndChangeNoOther) {
  const Results all = GpuBench().run(CpuDevice(), 1, kOneBucket);
  const Results expected = GpuBench(DType::f32, net_with_frozen).run(CpuDevice(), 1, kOneBucket);
  EXPECT_EQ(expected.losses, all.losses);
  EXPECT_LT(expected.gradients.size(), all.gradients.size());
  for (const int workers : {1, 2}) {
    for (const bool lowered : {true, false}) {
      GpuBench bench(DType::f32, net_with_frozen);
      EXPECT_TRUE(bench.run(bench.gpu(), workers, kSmallBuckets, false, {.lowered = lowered}) == expected) << workers;
    }
  }
}

// Training, evaluations and predictions of a worker take turns in one block, the largest that any of them needs.
TEST(GpuExecutor, AWorkerHasOneArena) {
  GpuBench bench;
  const GpuDevice device = bench.gpu();
  (void)bench.run(device, 2, kSmallBuckets);
  for (const int worker : {0, 1}) {
    auto& arena = std::static_pointer_cast<GpuWorkerStream>(device.stream(worker))->arena;
    const std::size_t there = arena.bytes();
    EXPECT_GT(there, 0U);
    const std::byte* const block = arena.reserve(there);
    Graph graph = net(bench.registry, End::loss);
    WorkerPool pool(2);
    const Executor training(graph, Mode::training, device, pool, 1);
    EXPECT_GE(there, MicroBatchRunner::arena_bytes(training.program()));
    EXPECT_EQ(arena.reserve(MicroBatchRunner::arena_bytes(training.program())), block);
  }
}

TEST(GpuExecutor, GivesItsMemoryBack) {
  GpuBench bench;
  (void)bench.run(bench.gpu(), 2, kSmallBuckets);
  (void)bench.run(bench.gpu(), 2, kSmallBuckets, true);
  EXPECT_EQ(bench.fake->blocks_alive(), 0U);
}

TEST(GpuExecutor, ErrorsCanNameStepAndOp) {
  GpuBench bench;
  (void)bench.run(bench.gpu(), 1, kOneBucket);
  // one graph, for an evaluation
  EXPECT_EQ(bench.fake->entered(), "step 0: conv 'conv1' ... accuracy 'metric.accuracy'");
}

TEST(GpuExecutor, RefusesWhatDoesNotFitBeforeAnythingIsAllocated) {
  GpuBench bench;
  bench.fake->set_free_memory(1000);
  try {
    (void)bench.run(bench.gpu(), 2, kOneBucket);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_TRUE(std::string(error.what()).starts_with("node7, rank 0, GPU 0 (a fake): expected ")) << error.what();
  }
  EXPECT_EQ(bench.fake->blocks_alive(), 0U);
}

TEST(GpuExecutor, NamesAnOpWithoutAKernel) {
  GpuBench bench;
  const auto kernels = std::make_shared<OpRegistry>();
  ops::add_built_in(*kernels);
  GpuSetup setup;
  setup.gpu = bench.fake;
  setup.kernels = kernels;
  const GpuDevice device(setup);
  WorkerPool pool(1);
  try {
    const Executor executor(net(bench.registry, End::loss), Mode::training, device, pool, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "conv 'conv1': expected a kernel of op 'conv' for GPUs, found none; set device: cpu, or leave this "
                 "layer out");
    EXPECT_EQ(error.code(), ExitCode::configuration);
  }
}

TEST(GpuMemory, IsATableWithWhatToChange) {
  const std::vector<MemoryNeed> needs = {{"parameters and states", std::size_t{600} << 20, 1},
                                         {"activations", std::size_t{3} << 30, 2},
                                         {"data: train", std::size_t{1} << 20, 1, "data.cache: memory"}};
  require_memory("node7, rank 0, GPU 0", std::size_t{7} << 30, needs, 16, 2);
  try {
    require_memory("node7, rank 0, GPU 0", std::size_t{6} << 30, needs, 16, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "node7, rank 0, GPU 0: expected 6.6 GiB of free memory, found 6.0 GiB; try data.cache: memory, or "
                 "more micro-batches (one has 16 samples now), or threads: 1\n"
                 "  parameters and states       600.0 MiB\n"
                 "  activations                   6.0 GiB   2 x 3.0 GiB\n"
                 "  data: train                   1.0 MiB");
  }
}

}  // namespace lockstep::exec
