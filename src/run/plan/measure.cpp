#include "run/plan/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <thread>

#include "core/median.hpp"
#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "device/cpu/add.hpp"
#include "device/threads.hpp"
#include "graph/model_graph.hpp"
#include "graph/workload.hpp"
#include "lockstep/random.hpp"
#include "step/exec/compiled.hpp"
#include "step/exec/micro_batch_gradients.hpp"
#include "step/exec/micro_batch_runner.hpp"
#include "step/exec/worker_pool.hpp"
#include "step/optim/cpu_updater.hpp"

namespace lockstep::plan {

namespace {

constexpr int kMaxRounds = 200;

/// Runs `body(thread)` on this many threads at once and returns when all are done.
void on_threads(int threads, const std::function<void(int thread)>& body) {
  std::vector<std::thread> others;
  const auto alone = [&](int thread) {
    device::use_one_thread();
    body(thread);
  };
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(alone, thread);
  alone(0);
  for (std::thread& thread : others) thread.join();
}

/// A micro-batch on one thread: its program, with its own operands.
class TimedMicroBatch {
 public:
  TimedMicroBatch(const Graph& graph, const exec::Device& device, const exec::ModelView& model)
      : graph_(graph), model_(model), kernels_(graph, Mode::training, device, 0) {
    program_ = exec::program_of(graph, Mode::training, exec::needs_of(kernels_));
    runner_ = std::make_unique<exec::MicroBatchRunner>(program_, std::move(kernels_));
    make_inputs();
    std::int64_t floats = 0;
    for (const Slot& slot : program_.slots) floats += whole_lines(slot.elements);
    gradients_ = AlignedBytes((std::max<std::int64_t>(floats, 1)) * sizeof(float));
    auto* memory = reinterpret_cast<float*>(gradients_.data());
    for (const Slot& slot : program_.slots) {
      slots_.push_back({memory, false});
      memory += whole_lines(slot.elements);
    }
    seconds_.resize(program_.instructions.size());
    seconds_of_first_.resize(program_.instructions.size());
  }

  /// `first`: as the first micro-batch after an update, so that kernels pack their weights again.
  void run(bool first) {
    if (first) ++context_.parameters_version;
    exec::MicroBatchOperands operands{.inputs = inputs_, .model = model_, .slots = slots_, .context = &context_};
    runner_->begin();
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      const auto start = Clock::now();
      runner_->run(i, operands);
      (first ? seconds_of_first_ : seconds_)[i].push_back(seconds_since(start));
    }
  }
  void forget() {
    for (auto* list : {&seconds_, &seconds_of_first_}) {
      for (auto& of : *list) of.clear();
    }
  }

  const Program& program() const { return program_; }
  const std::vector<double>& seconds(std::size_t instruction, bool first) const {
    return (first ? seconds_of_first_ : seconds_)[instruction];
  }

 private:
  // Floats in the range of images and activations; indices that are valid wherever 0 is.
  void make_inputs() {
    std::uint32_t state = 1;
    for (const ValueId id : graph_.inputs) {
      const TensorSpec& spec = graph_.at(id).spec;
      AlignedBytes& tensor = tensors_.emplace_back(std::max<std::size_t>(spec.bytes(), 1));
      std::fill_n(tensor.data(), tensor.size(), std::byte{0});
      if (spec.dtype == DType::f32) {
        auto* values = reinterpret_cast<float*>(tensor.data());
        for (std::int64_t i = 0; i < spec.elements(); ++i) {
          state = 1664525 * state + 1013904223;
          values[i] = (state >> 8) * 0x1p-23F - 1;
        }
      }
      inputs_.push_back(tensor.data());
    }
  }

  const Graph& graph_;
  const exec::ModelView& model_;
  exec::KernelSet kernels_;
  Program program_;
  std::unique_ptr<exec::MicroBatchRunner> runner_;
  std::vector<AlignedBytes> tensors_;
  std::vector<const void*> inputs_;
  AlignedBytes gradients_;
  std::vector<exec::SlotMemory> slots_;
  StepContext context_;
  std::vector<std::vector<double>> seconds_, seconds_of_first_;  ///< by instruction
};

std::vector<NodeSeconds> nodes_of(const Graph& graph,
                                  const std::vector<std::unique_ptr<TimedMicroBatch>>& micro_batches) {
  const auto typical = [&](std::size_t instruction, bool first) {
    std::vector<double> all;
    for (const auto& micro_batch : micro_batches) {
      const auto& some = micro_batch->seconds(instruction, first);
      all.insert(all.end(), some.begin(), some.end());
    }
    return median(std::move(all));
  };
  std::vector<NodeSeconds> nodes(graph.nodes.size());
  const Program& program = micro_batches.front()->program();
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.node < 0) continue;
    NodeSeconds& node = nodes[instruction.node];
    const double seconds = typical(i, false);
    if (instruction.kind == Instruction::Kind::forward) node.forward += seconds;
    if (instruction.kind == Instruction::Kind::backward) node.backward += seconds;
    // For kernels that keep nothing, the two differ only by chance.
    const double more = typical(i, true) - seconds;
    if (more > 0.1 * seconds) node.first += more;
  }
  return nodes;
}

/// Sums for an update to read: all zero.
class ZeroSums final : public comm::GradientReducer {
 public:
  explicit ZeroSums(const comm::GradientBuckets& buckets) {
    for (const auto& bucket : buckets.buckets) sums_.emplace_back(static_cast<std::size_t>(bucket.elements), 0.0F);
  }
  [[nodiscard]] comm::GradientBuffer buffer(int /*micro-batch*/, int /*bucket*/) override { return {}; }
  void ready(int /*micro-batch*/, int /*bucket*/) override {}
  void begin_step(std::uint64_t /*step*/, const comm::MicroBatchAssignment& /*assignment*/) override {}
  void finish() override {}
  std::span<const float> reduced(int bucket) const override { return sums_[bucket]; }
  [[nodiscard]] comm::Scalars scalars(const comm::OwnScalars& /*own*/) override { return {}; }
  comm::ReducerStatistics statistics() const override { return {}; }
  void trace(TraceRecorder* /*recorder*/) override {}

 private:
  std::vector<std::vector<float>> sums_;
};

std::int64_t trained_elements(const Graph& graph) {
  std::int64_t elements = 0;
  for (const ValueId id : graph.parameters) elements += graph.at(id).frozen ? 0 : graph.at(id).spec.elements();
  return elements;
}

double measure_update(const Graph& graph, const Program& program, const JobFile& job,
                      const OptimizerRegistry& optimizers, int threads) {
  const std::int64_t elements = trained_elements(graph);
  if (elements == 0) return 0;
  const comm::GradientBuckets buckets = exec::gradient_buckets(program, job.bucket_bytes, job.micro_batches);
  OptimizerOptions unfrozen = job.optimizer;
  for (ParameterGroup& group : unfrozen.groups) group.freeze_until = {};
  std::vector<double> seconds(threads);
  on_threads(threads, [&](int thread) {
    const ZeroSums sums(buckets);
    exec::WorkerPool pool(1);
    const optim::UpdaterSetup setup{
        graph, program, buckets, optimizers, unfrozen, job.clip_norm, static_cast<int>(job.micro_batches)};
    optim::CpuUpdater updater(setup, sums, pool);
    optim::Model model = updater.make_model(job.seed);
    std::vector<double> rounds;
    const auto begin = Clock::now();
    for (std::int64_t round = 0; round < 3 || (seconds_since(begin) < 0.2 && round < kMaxRounds); ++round) {
      const auto start = Clock::now();
      (void)updater.update(model, 1, {.learning_rate = 1e-6, .step = round, .update = round});
      rounds.push_back(seconds_since(start));
    }
    seconds[thread] = median(std::move(rounds));
  });
  return median(std::move(seconds)) / elements;
}

}  // namespace

std::int64_t bytes_to_measure(const Graph& graph, const exec::Device& device, int optimizer_states) {
  const exec::KernelSet kernels(graph, Mode::training, device);
  const auto needs = exec::needs_of(kernels);
  const Program program = exec::program_of(graph, Mode::training, needs);
  std::size_t bytes = exec::MicroBatchRunner::arena_bytes(program);
  for (const exec::KernelNeeds& node : needs) bytes += node.kept;
  std::size_t parameters = 0;
  for (const ValueId id : graph.parameters) parameters += graph.at(id).spec.bytes();
  // Parameters and gradients, once for the kernels and once for the update.
  return bytes + parameters * (5 + optimizer_states);
}

MeasuredGraph measure_graph(const Graph& graph, const exec::Device& device, const JobFile& job,
                            const OptimizerRegistry& optimizers, const MeasureOptions& options) {
  exec::TensorBlock parameters(graph, graph.parameters), states(graph, graph.states);
  exec::initialize(graph, graph.parameters, job.seed, parameters);
  exec::initialize(graph, graph.states, job.seed, states);
  const auto model = exec::view_of(parameters, states);
  std::vector<std::unique_ptr<TimedMicroBatch>> micro_batches;
  for (int thread = 0; thread < options.threads; ++thread) {
    micro_batches.push_back(std::make_unique<TimedMicroBatch>(graph, device, *model));
  }
  std::vector<int> rounds(micro_batches.size());
  on_threads(options.threads, [&](int thread) {
    TimedMicroBatch& micro_batch = *micro_batches[thread];
    micro_batch.run(true);  // generates the kernels' code and touches memory
    micro_batch.run(false);
    micro_batch.forget();
    const auto start = Clock::now();
    int& round = rounds[thread];
    for (; round < 2 || (seconds_since(start) < options.seconds && round < kMaxRounds); ++round) {
      micro_batch.run(round % 3 == 0);
    }
  });
  MeasuredGraph measured;
  measured.nodes = nodes_of(graph, micro_batches);
  measured.micro_batches = *std::min_element(rounds.begin(), rounds.end());
  const Program program = micro_batches.front()->program();
  micro_batches.clear();
  measured.update = measure_update(graph, program, job, optimizers, options.threads);
  return measured;
}

double measure_add(std::int64_t bytes, int threads) {
  const std::int64_t n = std::clamp<std::int64_t>(bytes, 1 << 14, std::int64_t{64} << 20) / 4;
  std::vector<double> rates(threads);
  on_threads(threads, [&](int thread) {
    std::vector<float> left(n, 0.0F), right(left);
    std::vector<double> rounds;
    const auto begin = Clock::now();
    for (int round = 0; round < 3 || (seconds_since(begin) < 0.1 && round < kMaxRounds); ++round) {
      const auto start = Clock::now();
      device::add(left.data(), right.data(), left.data(), n);
      rounds.push_back(seconds_since(start));
    }
    rates[thread] = 12.0 * n / median(std::move(rounds));
  });
  return median(std::move(rates));
}

namespace {

struct ReferenceModel {
  const char* zoo;
  Attributes attributes;
  std::vector<Feature> features;
  std::int64_t classes, vocabulary, batch;
};

/// Small models of the kinds that are trained: their kernels are timed.
std::vector<ReferenceModel> reference_models() {
  const auto integer = [](std::int64_t value) { return value; };
  const Feature image{"image", Feature::Kind::image, {DType::f32, {32, 32, 3}}};
  const Feature label{"label", Feature::Kind::label, {DType::i32, {}}};
  const Feature tokens{"tokens", Feature::Kind::tokens, {DType::i32, {128}}};
  const Feature target{"target", Feature::Kind::tokens, {DType::i32, {128}}};
  return {{"resnet", Attributes({{"depth", integer(20)}}), {image, label}, 10, 0, 16},
          {"gpt",
           Attributes({{"layers", integer(2)}, {"heads", integer(4)}, {"width", integer(256)}, {"dropout", 0.0}}),
           {tokens, target},
           0,
           128,
           4}};
}

/// Operations, or bytes, and the seconds they took.
struct Sum {
  double amount = 0, seconds = 0;
  double rate() const { return seconds > 0 ? amount / seconds : 0; }
};

struct Sums {
  Sum products, convolutions, elements;
};

void add_nodes(const Graph& graph, const std::vector<NodeSeconds>& nodes, Sums& sums) {
  const Rates unit{.matmul_flops = 1, .conv_flops = 1, .element_bytes = 1};
  const std::vector<NodeSeconds> amounts = seconds_by_rates(graph, unit);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op->view) continue;
    const bool multiplies = multiplies_matrices(node);
    Sum& sum = node.op->name == "conv" ? sums.convolutions : multiplies ? sums.products : sums.elements;
    const Cost cost = cost_of(graph, node);
    const bool goes_back = nodes[n].backward > 0;
    const double back = multiplies ? cost.backward_flops : amounts[n].backward;
    sum.amount += (multiplies ? cost.forward_flops : amounts[n].forward) + (goes_back ? back : 0);
    sum.seconds += nodes[n].forward + nodes[n].backward;
  }
}

}  // namespace

Rates measure_rates(const exec::Device& device, const OpRegistry& ops, const ModelRegistry& models,
                    const OptimizerRegistry& optimizers, int threads) {
  constexpr double kSecondsEach = 0.8;
  Sums sums;
  double update = 0;
  for (const ReferenceModel& reference : reference_models()) {
    ModelOptions model;
    model.zoo = reference.zoo;
    model.parameters = reference.attributes;
    const LossOptions loss;
    const Graph whole = build_model_graph({.model = &model,
                                           .loss = &loss,
                                           .metrics = {},
                                           .features = reference.features,
                                           .classes = reference.classes,
                                           .vocabulary = reference.vocabulary,
                                           .batch = reference.batch},
                                          ops, models);
    const Graph graph = device.lower(whole, true);
    JobFile job;
    job.micro_batches = 1;
    job.optimizer.kind = "adamw";
    const MeasuredGraph measured = measure_graph(graph, device, job, optimizers, {threads, kSecondsEach});
    add_nodes(graph, measured.nodes, sums);
    update = measured.update;
  }
  Rates rates;
  rates.device = device.name();
  rates.matmul_flops = sums.products.rate();
  rates.conv_flops = sums.convolutions.rate();
  rates.element_bytes = sums.elements.rate();
  rates.add_bytes = measure_add(std::int64_t{16} << 20, threads);
  constexpr int kStatesOfAdamW = 2;
  rates.update_bytes = update_bytes_of_element(kStatesOfAdamW) / update;
  rates.message_seconds = kMessageSeconds;
  rates.message_bytes = rates.add_bytes / 3;
  rates.cores = device::available_cores();
  return rates;
}

}  // namespace lockstep::plan
