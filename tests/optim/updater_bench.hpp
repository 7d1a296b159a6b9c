// A run of updates from made-up sums, for tests of updaters: on the host, and on any Gpu.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/low_precision.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "graph/lowering/lower.hpp"
#include "graph/precision.hpp"
#include "graph/weight_order.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/random.hpp"
#include "ops/registry.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/optim/cpu_updater.hpp"
#include "step/optim/gpu_updater.hpp"
#include "step/optim/registry.hpp"

namespace lockstep::optim {

inline constexpr int kUpdaterMicroBatches = 3, kUpdaterSteps = 3;

// Every kind of parameter: stored in another order on a GPU, used twice, without decay, longer than a chunk, shorter
// than a part; matrices, one of them longer than a block of fused terms; and statistics.
inline Graph updater_net(const OpRegistry& ops, std::int64_t width) {
  GraphBuilder b(ops, 2);
  ValueId x = b.input("image", {DType::f32, {5, 5, 9}});
  const ValueId label = b.input("label", {DType::i32, {}});
  x = b.apply("conv", {x}, Attributes({{"filters", std::int64_t{70}}, {"kernel", std::int64_t{3}}}));
  x = b.apply("linear", {b.apply("global_pool", {x})}, Attributes({{"features", width}}));
  x = b.apply("linear", {x}, Attributes({{"features", width}}), "twice");
  x = b.apply("batch_norm", {x});
  x = b.apply("linear", {x}, Attributes({{"features", width}, {"tied", std::string("twice")}}));
  x = b.apply("linear", {b.apply("relu", {x})}, Attributes({{"features", std::int64_t{5}}}));
  b.graph().output = x;
  b.graph().loss = b.add_node("cross_entropy", {x, label}, {}, "loss");
  for (const ValueId id : b.graph().parameters) {
    Value& value = b.graph().values[static_cast<std::size_t>(id)];
    value.matrix = value.name == "conv1.weight" || value.name == "linear1.weight";
  }
  return std::move(b.graph());
}

inline OptimizerOptions sgd(double momentum, bool nesterov = false, double weight_decay = 0, bool decay_all = false) {
  return {
      "sgd",
      Attributes(
          {{"momentum", momentum}, {"nesterov", nesterov}, {"weight_decay", weight_decay}, {"decay_all", decay_all}})};
}
inline OptimizerOptions decaying(const std::string& optimizer) {
  return {optimizer, Attributes({{"weight_decay", 0.1}})};
}
inline OptimizerOptions rmsprop(double momentum, bool centered) {
  return {"rmsprop", Attributes({{"momentum", momentum}, {"centered", centered}, {"weight_decay", 0.1}})};
}
inline OptimizerOptions lars(double momentum) {
  return {"lars", Attributes({{"momentum", momentum}, {"weight_decay", 0.1}})};
}
inline OptimizerOptions muon(bool nesterov) {
  return {"muon", Attributes({{"nesterov", nesterov}, {"steps", std::int64_t{2}}, {"weight_decay", 0.1}})};
}
/// Each number of its formula matters.
inline OptimizerOptions adafactor(bool decay_all) {
  return {"adafactor", Attributes({{"beta2_decay", -0.7},
                                   {"clip_threshold", 0.7},
                                   {"epsilon1", 1e-4},
                                   {"epsilon2", 0.05},
                                   {"weight_decay", 0.1},
                                   {"decay_all", decay_all}})};
}
inline OptimizerOptions averaged(OptimizerOptions options) {
  options.average.emplace();
  return options;
}
inline std::string text_of(const OptimizerOptions& options) {
  std::string text = options.kind;
  for (const auto& [name, value] : options.attributes.all()) text += ", " + name + " " + to_string(value);
  return text;
}

/// Sums of gradients are multiplied by the scale; in step `spoiled` some of them become `what`: in the middle of
/// tensors, where kernels move several floats at once, or the last ones, where fewer are left.
struct SumsScaling {
  bool on = false;
  float scale = 1;
  int spoiled = -1;
  float what = 0;
  bool last = false;
};

/// A run of updates from made-up sums, on the host or on a GPU.
class UpdaterBench {
 public:
  OptimizerRegistry optimizers;
  /// Called with the first model, and after each update on the host.
  std::function<void(const Model& model)> watch_first;
  std::function<void(const Model& model, const exec::TensorBlock& gradient)> watch;
  int first_sums = 0;  ///< the number of the sums that the first update gets

  explicit UpdaterBench(DType precision = DType::f32, std::int64_t width = 70) : precision_(precision) {
    ops::add_built_in(registry_);
    add_built_in(optimizers);
    graph_ = updater_net(registry_, width);
    set_precision(graph_, precision);
    graph_on_gpu_ = lower(graph_, {DeviceKind::cuda, &registry_});
    executor_ = std::make_unique<exec::Executor>(graph_, Mode::training, device_, pool_, 1);
    buckets_ = exec::gradient_buckets(executor_->program(), 8192, kUpdaterMicroBatches);
  }

  struct Result {
    std::vector<float> values;
    std::vector<UpdateResult> updates;
    bool operator==(const Result& other) const {
      return updates == other.updates && values.size() == other.values.size() &&
             std::memcmp(values.data(), other.values.data(), values.size() * sizeof(float)) == 0;
    }
  };

  Result on_host(const OptimizerOptions& options, double clip_norm, const SumsScaling& scaling = {}) {
    return on_ranks(*communicator_, options, clip_norm, scaling);
  }

  /// The same on one of several ranks: each has some of the micro-batches, and updates everything.
  Result on_ranks(Communicator& group, const OptimizerOptions& options, double clip_norm = 0,
                  const SumsScaling& scaling = {}) {
    const auto reducer = comm::make_reducer(group, buckets_);
    UpdaterSetup of_group = setup(graph_, options, clip_norm, scaling);
    of_group.group = &group;
    CpuUpdater updater(of_group, *reducer, pool_);
    return run(group, updater, *reducer, scaling,
               [](int /*bucket*/, const comm::GradientBuffer& buffer, const std::vector<float>& values) {
                 for (std::size_t i = 0; i < values.size(); ++i)
                   buffer.memory[i] = buffer.add ? buffer.memory[i] + values[i] : values[i];
               });
  }

  /// `after`: called with the updater at the end.
  template <class After>
  Result on_gpu(device::Gpu& gpu, std::unique_ptr<const UpdateKernels> kernels, const OptimizerOptions& options,
                double clip_norm, const SumsScaling& scaling, const After& after) {
    const auto worker = gpu.make_stream();
    comm::GpuAllReduce reducer(*communicator_, buckets_, {}, gpu, nullptr);
    GpuUpdater updater(setup(graph_on_gpu_, options, clip_norm, scaling), gpu, reducer, std::move(kernels));
    std::vector<device::PinnedBlock> sums;  // read until the last update has been fetched
    auto result = run(*communicator_, updater, reducer, scaling,
                      [&](int bucket, const comm::GradientBuffer& buffer, std::vector<float> values) {
                        to_gpus_order(bucket, values);
                        const std::size_t bytes = values.size() * sizeof(float);
                        const std::byte* const pinned = sums.emplace_back(gpu, bytes).get();
                        gpu.fill(sums.back().get(), reinterpret_cast<const std::byte*>(values.data()), bytes);
                        gpu.wait(worker, buffer.free);
                        gpu.copy_in(worker, reinterpret_cast<std::byte*>(buffer.memory), pinned, bytes);
                        gpu.record(buffer.written, worker);
                      });
    after(updater);
    return result;
  }

  /// All matrices, in the products' type, as the last update left them. read(memory, bytes): what is at a GPU's
  /// address.
  template <class Read>
  void expect_copies(GpuUpdater& updater, const Read& read) const {
    Model model = updater.make_model(7);
    updater.fetch(model);
    const auto on_gpu = updater.values(model).placed;
    for (std::size_t i = 0; i < model.parameters.size(); ++i) {
      const bool copied = is_low_precision(precision_) && model.parameters.shape(i).size() > 1;
      const void* const copy = on_gpu->low_precision.at(i);
      ASSERT_EQ(copy != nullptr, copied) << model.parameters.name(i);
      if (!copied) continue;
      std::vector<std::uint16_t> expected(model.parameters.at(i).size());
      const std::vector<float> values = in_gpus_order(i, model.parameters.at(i));
      downcast(precision_, values.data(), expected.data(), std::ssize(expected));
      const std::size_t bytes = expected.size() * sizeof(std::uint16_t);
      EXPECT_EQ(std::memcmp(read(copy, bytes), expected.data(), bytes), 0) << model.parameters.name(i);
    }
  }
  /// Of a GPU that is the host.
  void expect_copies(GpuUpdater& updater) const {
    expect_copies(updater, [](const void* copy, std::size_t /*bytes*/) { return copy; });
  }

 private:
  [[nodiscard]] UpdaterSetup setup(const Graph& graph, const OptimizerOptions& options, double clip_norm,
                                   const SumsScaling& scaling) const {
    return {graph, executor_->program(), buckets_, optimizers, options, clip_norm, kUpdaterMicroBatches, scaling.on};
  }

  [[nodiscard]] std::vector<float> in_gpus_order(std::size_t parameter, std::span<const float> values) const {
    const Value& value = graph_on_gpu_.at(graph_on_gpu_.parameters[parameter]);
    const FilterSizes sizes = value.channels_last ? filter_sizes(value.spec.shape) : FilterSizes();
    std::vector<float> ordered(values.size());
    for (std::int64_t i = 0; i < std::ssize(values); ++i) {
      ordered[static_cast<std::size_t>(sizes.place(i))] = values[static_cast<std::size_t>(i)];
    }
    return ordered;
  }

  void to_gpus_order(int bucket, std::vector<float>& values) const {
    for (std::size_t s = 0; s < buckets_.slots.size(); ++s) {
      const Slot& slot = executor_->program().slots[s];
      if (buckets_.slots[s].bucket != bucket || slot.kind != Slot::Kind::gradient) continue;
      const auto elements = std::span(values).subspan(static_cast<std::size_t>(buckets_.slots[s].offset),
                                                      static_cast<std::size_t>(slot.elements));
      std::ranges::copy(in_gpus_order(static_cast<std::size_t>(slot.target), elements), elements.begin());
    }
  }

  template <class Write>
  Result run(const Communicator& group, Updater& updater, comm::GradientReducer& reducer, const SumsScaling& scaling,
             const Write& write) {
    Model model = updater.make_model(7);
    updater.begin(model);
    if (watch_first) watch_first(model);
    Result result;
    const auto assignment = comm::place_micro_batches(comm::equal_counts(kUpdaterMicroBatches, group.size()));
    const auto& own = assignment.micro_batches_of_rank[static_cast<std::size_t>(group.rank())];
    std::int64_t made = 0;
    for (int step = 0; made < kUpdaterSteps; ++step) {
      const bool spoiled = step == scaling.spoiled;
      reducer.begin_step(static_cast<std::uint64_t>(step), assignment);
      for (const int micro_batch : own) {
        for (int b = 0; b < buckets_.count(); ++b) {
          write(b, reducer.buffer(micro_batch, b),
                gradient(first_sums + static_cast<int>(made), micro_batch, b, scaling, spoiled));
          reducer.ready(micro_batch, b);
        }
      }
      reducer.finish();
      result.updates.push_back(
          updater.update(model, 6,
                         {.learning_rate = 0.1,
                          .step = step,
                          .update = made,
                          .loss_scale = scaling.scale,
                          .average = updater.has_average() ? 1 / static_cast<double>(made + 1) : 0}));
      if (result.updates.back().skipped) continue;
      ++made;
      if (made == 2) take(updater.gradient(), result);
      if (watch) watch(model, updater.gradient());
    }
    if (updater.has_average()) updater.swap_average(model, 0);
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

  [[nodiscard]] std::vector<float> gradient(int step, int micro_batch, int bucket, const SumsScaling& scaling,
                                            bool spoiled) const {
    RandomStream random(mix(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(micro_batch)),
                        static_cast<std::uint64_t>(bucket));
    std::vector<float> values(static_cast<std::size_t>(buckets_.at(bucket).elements));
    for (float& value : values) value = random.between(-1, 1);
    for (std::size_t s = 0; s < buckets_.slots.size(); ++s) {
      const Slot& slot = executor_->program().slots[s];
      if (buckets_.slots[s].bucket != bucket || slot.kind != Slot::Kind::gradient) continue;
      float* const first = values.data() + buckets_.slots[s].offset;
      for (std::int64_t i = 0; i < slot.elements; ++i) first[i] *= scaling.scale;
      if (!spoiled || micro_batch != 1) continue;
      if (!scaling.last && bucket == 1) first[slot.elements / 2] = scaling.what;
      if (scaling.last && slot.elements % kPack != 0) first[slot.elements - 1] = scaling.what;
    }
    return values;
  }

  DType precision_;
  OpRegistry registry_;
  Graph graph_, graph_on_gpu_;
  exec::CpuDevice device_;
  exec::WorkerPool pool_{1};
  std::unique_ptr<exec::Executor> executor_;
  comm::GradientBuckets buckets_;
  std::unique_ptr<Communicator> communicator_ = make_single_communicator();
};

}  // namespace lockstep::optim
