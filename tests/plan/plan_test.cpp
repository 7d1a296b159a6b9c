// A plan's memory and time, in cases small enough to count by hand, and compared with real executors.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "comm/reduce/tree_sums.hpp"
#include "exec/part_nets.hpp"
#include "run/plan/limits.hpp"
#include "run/plan/measure.hpp"
#include "run/plan/memory.hpp"
#include "run/plan/report.hpp"
#include "run/plan/search.hpp"
#include "run/plan/time.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/exec/executor.hpp"
#include "step/exec/micro_batch_runner.hpp"
#include "step/exec/worker_pool.hpp"
#include "step/optim/newton_schulz.hpp"

namespace lockstep::plan {

namespace {

/// Linear layers one after the other, each 16 x 16 without a bias: 256 weights.
void chain(GraphBuilder& b, int layers) {
  ValueId x = b.apply("flatten", {b.input("image", {DType::f32, {4, 4, 1}})});
  for (int i = 0; i < layers; ++i) {
    x = b.apply("linear", {x}, Attributes({{"features", std::int64_t{16}}, {"bias", false}}));
  }
  exec::finish(b, x, "accuracy");
}

std::vector<optim::OptimizerState> two_states() {
  return {{"first"}, {"second"}};
}

/// A net with everything that a plan of it needs. Each layer takes one second forward and two backward.
struct Planned {
  explicit Planned(const std::function<void(GraphBuilder&)>& build, int micro_batches = 8)
      : net(build), graph(device.lower(net.graph, true)) {
    job.batch_size = exec::kSamples * micro_batches;
    job.micro_batches = micro_batches;
    job.checkpoint.never = true;
    model = std::make_unique<ModelSetup>(model_setup(graph, job, device, false));
    memory = std::make_unique<MemorySetup>(MemorySetup{*model, two_states(), {}, 0});
    for (const Node& node : graph.nodes) {
      const bool multiplies = node.op->name == "linear";
      seconds.push_back(multiplies ? NodeSeconds{1, 2, 0} : NodeSeconds{});
    }
    rates.add_bytes = rates.element_bytes = rates.update_bytes = rates.message_bytes = 1e12;
    rates.cores = 64;
  }
  [[nodiscard]] TimeSetup time(int ranks) const {
    TimeSetup setup;
    setup.optimizer_states = 2;
    for (int rank = 0; rank < ranks; ++rank) setup.ranks.push_back({seconds, rates});
    return setup;
  }
  [[nodiscard]] PlacedModel place(int ranks, int parts, Recompute recompute = Recompute::never) const {
    Choice choice{{}, recompute};
    choice.parallel.parts = parts;
    return place_model(*model, ranks_of_one_host(ranks, 1, 64), choice);
  }

  exec::CpuDevice device;
  exec::Net net;
  Graph graph;
  JobFile job;
  std::unique_ptr<ModelSetup> model;
  std::unique_ptr<MemorySetup> memory;
  std::vector<NodeSeconds> seconds;
  Rates rates;
};

constexpr std::int64_t kWeight = 16 * 16 * 4;  // bytes

TEST(Memory, OfOneRank) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); }, 1);
  const RankMemory rank = memory_of(planned.place(1, 1), *planned.memory).front();
  EXPECT_EQ(rank.parameters, 4 * kWeight);
  EXPECT_EQ(rank.gradients, 4 * kWeight);
  EXPECT_EQ(rank.optimizer, 2 * 4 * kWeight);
  EXPECT_EQ(rank.statistics, 0);
  EXPECT_EQ(rank.messages, 0);
  EXPECT_EQ(rank.total(), rank.least() + rank.kernels);
}

TEST(Memory, ActivationsAreTheExecutorsOwn) {
  for (const Recompute recompute : {Recompute::never, Recompute::cheap, Recompute::blocks}) {
    const Planned planned(exec::residual);
    exec::WorkerPool pool(1);
    const exec::Executor executor(planned.net.graph, Mode::training, planned.device, pool, 1, {.recompute = recompute});
    const RankMemory rank = memory_of(planned.place(1, 1, recompute), *planned.memory).front();
    // Except for gradients that kernels add to those of siblings directly.
    EXPECT_GE(rank.activations, executor.program().arena_bytes);
    EXPECT_LE(rank.activations, static_cast<std::int64_t>(exec::MicroBatchRunner::arena_bytes(executor.program())));
  }
}

TEST(Memory, TwoRanksReadEachOthersSums) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); }, 2);
  const std::vector<RankMemory> ranks = memory_of(planned.place(2, 1), *planned.memory);
  // A partial sum and the whole one, and the own slice of the other's partial sum. Slices are cut between tensors: two
  // of the four each. The host is charged once for what a rank sees of the other's: half of the whole sum, and that
  // slice.
  for (const RankMemory& rank : ranks) {
    EXPECT_EQ(rank.gradients, (4 + 4 + 2) * kWeight);
    EXPECT_EQ(rank.total() - rank.charged(), (2 + 2) * kWeight);
  }
}

TEST(Memory, PartsHaveTheirOwnWeights) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); });
  const std::vector<RankMemory> ranks = memory_of(planned.place(2, 2), *planned.memory);
  EXPECT_EQ(ranks[0].parameters, 2 * kWeight);
  EXPECT_EQ(ranks[1].parameters, 2 * kWeight);
  EXPECT_EQ(ranks[1].optimizer, 4 * kWeight);
  // Three micro-batches in flight and one being sent, of 4 samples of 16 floats: activations to part 1, gradients to
  // part 0. Rank 0 also holds a weight of the other part when it hashes the model.
  EXPECT_EQ(ranks[0].messages, 4 * exec::kSamples * 16 * 4 + kWeight);
  EXPECT_EQ(ranks[1].messages, 4 * exec::kSamples * 16 * 4);
}

TEST(Memory, ShardingDividesByOwnSlices) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); }, 2);
  const auto of = [&](Sharding sharding) {
    Choice choice;
    choice.parallel.sharding = sharding;
    return memory_of(place_model(*planned.model, ranks_of_one_host(2, 1, 64), choice), *planned.memory).front();
  };
  EXPECT_EQ(of(Sharding::none).optimizer, 8 * kWeight);
  EXPECT_EQ(of(Sharding::optimizer).optimizer, 4 * kWeight);
  EXPECT_EQ(of(Sharding::optimizer).parameters, 4 * kWeight);
  // In both ranks' rings: the one bucket while it is open, again where the ring ends, and once ahead. The open bucket
  // of a worker at the start, when micro-batches are tried, which is more than the half of a sum later.
  EXPECT_EQ(of(Sharding::gradients).gradients, (2 * 3 * 4 + 4) * kWeight);
  EXPECT_EQ(of(Sharding::gradients).optimizer, 4 * kWeight);
  // Half of what the ranks share is the other's: parameters, and slices of partial sums or of rings.
  EXPECT_EQ(of(Sharding::optimizer).of_others, (2 + 2) * kWeight);
  EXPECT_EQ(of(Sharding::gradients).of_others, (2 + 3 * 4) * kWeight);
}

// What is packed for CPUs, and files that are written, are not in a GPU's memory.
TEST(Memory, OfGpusIsWhatTheirComponentsAllocate) {
  Planned planned([](GraphBuilder& b) { chain(b, 4); }, 2);
  for (ValueId id : planned.graph.parameters) planned.graph.values[static_cast<std::size_t>(id)].matrix = true;
  planned.job.checkpoint.never = false;
  planned.model->on_gpus = true;
  OptimizerDef makes_steps;
  makes_steps.matrix_step = [](const Attributes&, const UpdateStep&) { return MatrixStep(); };
  const PlacedModel placed = planned.place(2, 1);
  const auto of = [&](const OptimizerDef* optimizer) {
    return memory_of(placed, {*planned.model, two_states(), {}, 0, false, optimizer}).front();
  };
  const RankMemory plain = of(nullptr), muon = of(&makes_steps);
  EXPECT_EQ(plain.kernels, 0);
  EXPECT_EQ(plain.checkpoint, 0);
  EXPECT_EQ(plain.parameters, 4 * kWeight);
  const auto reduces = comm::GpuAllReduce::bytes(*placed.parts[0].layout.buckets, 1, 2, 1);
  EXPECT_EQ(plain.gradients, 4 * kWeight + static_cast<std::int64_t>(reduces));
  // All steps, and Newton-Schulz' four matrices for one of them.
  EXPECT_GE(muon.optimizer, plain.optimizer + (4 + 4) * kWeight);
  EXPECT_LT(muon.optimizer, plain.optimizer + (4 + 5) * kWeight);
}

TEST(Memory, GpusShareNone) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); }, 2);
  const MemorySetup memory{*planned.model, two_states(), {}, 0, false};
  for (const RankMemory& rank : memory_of(planned.place(2, 1), memory)) EXPECT_EQ(rank.charged(), rank.total());
}

// A step has the size of its weight. One that is made needs two more of its size, and two of its smaller side squared.
TEST(Memory, StepsOfMatricesAreNotDivided) {
  Planned planned([](GraphBuilder& b) { chain(b, 4); }, 2);
  for (const ValueId id : {planned.graph.parameters[0], planned.graph.parameters[2]}) {
    planned.graph.values[static_cast<std::size_t>(id)].matrix = true;
  }
  OptimizerDef makes_steps;
  makes_steps.matrix_step = [](const Attributes&, const UpdateStep&) { return MatrixStep(); };
  makes_steps.matrix_scratch = optim::orthogonalize_floats;
  const MemorySetup memory{*planned.model, two_states(), {}, 0, true, &makes_steps};
  const auto more = [&](int ranks, Sharding sharding) {
    Choice choice;
    choice.parallel.sharding = sharding;
    const PlacedModel placed = place_model(*planned.model, ranks_of_one_host(ranks, 1, 64), choice);
    return memory_of(placed, memory).front().optimizer - memory_of(placed, *planned.memory).front().optimizer;
  };
  EXPECT_EQ(more(1, Sharding::none), (2 + 4) * kWeight);
  EXPECT_EQ(more(2, Sharding::none), (2 + 4) * kWeight);
  EXPECT_EQ(more(2, Sharding::optimizer), (2 + 4) * kWeight);  // more than the three that are gathered
}

// Of two states, one has a float for each row, and a whole line of memory for these, and one is its weight's.
TEST(Memory, StatesOfAnotherShapeAreNotDivided) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); }, 2);
  const auto rows = [](const Shape& parameter) { return Shape{parameter.front()}; };
  const MemorySetup memory{*planned.model, {{"rows", rows}, {"moment"}}, {}, 0};
  const auto of = [&](Sharding sharding) {
    Choice choice;
    choice.parallel.sharding = sharding;
    return memory_of(place_model(*planned.model, ranks_of_one_host(2, 1, 64), choice), memory).front().optimizer;
  };
  EXPECT_EQ(of(Sharding::none), 4 * 16 * 4 + 4 * kWeight);
  EXPECT_EQ(of(Sharding::optimizer), 4 * 16 * 4 + 2 * kWeight);
  EXPECT_EQ(of(Sharding::gradients), 4 * 16 * 4 + 2 * kWeight);
}

TEST(Memory, HostsHaveTheirShareOfDividedParametersAndWhatIsReadAtATime) {
  const Planned planned([](GraphBuilder& b) { chain(b, 16); }, 4);
  Choice choice;
  choice.parallel.sharding = Sharding::parameters;
  JobFile job = planned.model->job;
  job.bucket_bytes = kWeight;
  const ModelSetup model{planned.net.graph, job, planned.model->keeping, planned.model->packing};
  const MemorySetup memory{model, two_states(), {}, 0};
  const auto of = [&](const std::vector<int>& host_of) {
    const RankSetup ranks{host_of, std::vector<int>(4, 1), {}};
    return memory_of(place_model(model, ranks, choice), memory).front();
  };
  EXPECT_EQ(of({0, 0, 0, 0}).parameters, 16 * kWeight);
  EXPECT_EQ(of({0, 0, 1, 1}).parameters, (8 + 2 + 2) * kWeight);
  EXPECT_EQ(of({0, 1, 2, 3}).parameters, (4 + 1 + 2) * kWeight);
  // GPUs share nothing, and have slots for a unit and two more, whatever the number of workers.
  ModelSetup on_gpus = model;
  on_gpus.on_gpus = true;
  const MemorySetup gpu_memory{on_gpus, two_states(), {}, 0, false};
  const RankSetup gpus{{0, 0, 0, 0}, std::vector<int>(4, 2), {}};
  const RankMemory gpu = memory_of(place_model(on_gpus, gpus, choice), gpu_memory).front();
  EXPECT_EQ(gpu.parameters, (4 + 3 + 1) * kWeight);  // and one for a trial
  // Kernels keep no packed weights.
  EXPECT_GT(memory_of(planned.place(4, 1), *planned.memory).front().kernels, 0);
  EXPECT_EQ(of({0, 1, 2, 3}).kernels, 0);
}

TEST(Time, OneRankTakesMicroBatchAfterMicroBatch) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); });
  const StepTime time = time_of(planned.place(1, 1), planned.time(1));
  EXPECT_NEAR(time.seconds, 8 * 4 * 3,
              1e-6 + 1);  // the first layer's input has no gradient, but the kernel's time counts as if it had
}

TEST(Time, APipelineOfEqualPartsIsOneMicroBatchLonger) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); });
  // 1F1B: m + s - 1 times a micro-batch of a part.
  EXPECT_NEAR(time_of(planned.place(2, 2), planned.time(2)).seconds, (8 + 2 - 1) * 6, 0.1);
  EXPECT_NEAR(time_of(planned.place(4, 4), planned.time(4)).seconds, (8 + 4 - 1) * 3, 0.1);
  // Data parallelism: each rank has half of the micro-batches.
  EXPECT_NEAR(time_of(planned.place(2, 1), planned.time(2)).seconds, 4 * 12, 0.1);
}

TEST(Time, RanksThatShareACoreTakeTurns) {
  Planned planned([](GraphBuilder& b) { chain(b, 4); });
  planned.rates.cores = 1;
  EXPECT_NEAR(time_of(planned.place(2, 1), planned.time(2)).seconds, 8 * 12, 0.1);
}

TEST(Time, PartsThatShareCoresWaitForThem) {
  Planned planned([](GraphBuilder& b) { chain(b, 4); });
  planned.rates.cores = 1;
  EXPECT_NEAR(time_of(planned.place(2, 2), planned.time(2)).seconds, 2 * (8 + 2 - 1) * 6, 0.1);
}

TEST(Time, RanksWaitForTheOneThatIsHeldUp) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); });
  TimeSetup time = planned.time(2);
  time.unevenness = 0.5;
  EXPECT_NEAR(time_of(planned.place(2, 1), time).seconds, 1.5 * 4 * 12, 0.1);
}

// Of four equal matrices, one of three ranks makes the steps of two, whatever else is divided.
TEST(Time, RanksShareStepsOfMatrices) {
  Planned planned([](GraphBuilder& b) { chain(b, 4); });
  for (ValueId id : planned.graph.parameters) planned.graph.values[static_cast<std::size_t>(id)].matrix = true;
  OptimizerDef makes_steps;
  makes_steps.matrix_step = [](const Attributes&, const UpdateStep&) { return MatrixStep(); };
  makes_steps.matrix_operations = [](const Attributes&, std::int64_t, std::int64_t) { return 1e9; };
  planned.rates.matmul_flops = 1e9;
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer}) {
    Choice choice;
    choice.parallel.sharding = sharding;
    const PlacedModel placed = place_model(*planned.model, ranks_of_one_host(3, 1, 64), choice);
    TimeSetup setup = planned.time(3);
    setup.optimizer = &makes_steps;
    const StepTime by_rates = time_of(placed, setup);
    setup.update_seconds = 1.0 / 256;  // measured: a second for each matrix
    const StepTime measured = time_of(placed, setup);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_NEAR(by_rates.ranks[rank].update, rank == 0 ? 2 : 1, 1e-3);
      EXPECT_NEAR(measured.ranks[rank].update, rank == 0 ? 2 : 1, 1e-3);
    }
  }
}

TEST(Time, RecomputedBlocksRunForwardTwice) {
  Planned planned(exec::transformer);
  planned.seconds.assign(planned.graph.nodes.size(), {1, 2, 0});
  const double kept = micro_batch_seconds(planned.place(1, 1).parts[0], planned.time(1).ranks[0]).backward;
  const double made_again =
      micro_batch_seconds(planned.place(1, 1, Recompute::blocks).parts[0], planned.time(1).ranks[0]).backward;
  EXPECT_GT(made_again, kept);
}

/// Four ranks on two hosts between which a second passes for each megabyte; nothing else takes time.
struct Networked {
  Networked() {
    planned.rates.network_bytes = 1e6;
    planned.rates.uses_host_cores = false;
  }
  [[nodiscard]] StepTime time(const std::vector<int>& host_of, Sharding sharding) const {
    const auto ranks = host_of.size();
    Choice choice;
    choice.parallel.sharding = sharding;
    return time_of(place_model(*planned.model, {host_of, std::vector<int>(ranks, 1), {}}, choice),
                   planned.time(static_cast<int>(ranks)));
  }
  static constexpr double kAll = 16 * kWeight / 1e6;  // seconds for as many bytes as the gradient has

  Planned planned{[](GraphBuilder& b) { chain(b, 16); }};
};

// Of a gradient, each host sends the sum of the half that it does not own, and the finished half that it owns.
TEST(Time, RanksOfAHostShareItsNetwork) {
  const Networked net;
  EXPECT_NEAR(net.time({0, 1}, Sharding::none).ranks[0].reduce, net.kAll, 1e-6);
  EXPECT_NEAR(net.time({0, 0, 0, 0, 1, 1, 1, 1}, Sharding::none).ranks[0].reduce, net.kAll, 1e-6);
}

TEST(Time, DividedUpdatesSendAsMuchAsWholeOnes) {
  const Networked net;
  for (const std::vector<int>& hosts : {std::vector<int>{0, 1}, {0, 0, 1, 1}}) {
    const StepTime none = net.time(hosts, Sharding::none), divided = net.time(hosts, Sharding::optimizer);
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      EXPECT_EQ(none.ranks[rank].parameter_bytes, 0);
      EXPECT_EQ(none.ranks[rank].gradient_bytes,
                divided.ranks[rank].gradient_bytes + divided.ranks[rank].parameter_bytes);
    }
    EXPECT_NEAR(none.seconds, divided.seconds, 1e-6);
  }
}

SearchResult search_on(const Planned& planned, int ranks, std::int64_t limit) {
  const RankSetup setup = ranks_of_one_host(ranks, 1, 64);
  const TimeSetup time = planned.time(ranks);
  return search({*planned.model, *planned.memory, time, setup,
                 std::vector<std::int64_t>(static_cast<std::size_t>(ranks), limit)});
}

TEST(Search, WhereAModelFitsDataParallelismIsFaster) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); });
  const SearchResult result = search_on(planned, 2, std::int64_t{1} << 40);
  ASSERT_EQ(result.candidates.size(), 2);
  EXPECT_EQ(result.candidates[0].placed.parts.size(), 1);
  EXPECT_EQ(overrides_of(result.candidates[0].placed.choice), "parallel.parts=1 recompute=never");
  EXPECT_EQ(
      result.why_not_more_parts,
      "2 parts would take 1.12 times as long: 8 micro-batches are few for so many parts, of each step 11 % is spent "
      "waiting; more `micro_batches` make that less");
}

TEST(Search, WhereItDoesNotItIsCut) {
  const Planned planned([](GraphBuilder& b) { chain(b, 8); });
  const SearchResult whole = search_on(planned, 2, std::int64_t{1} << 40);
  const auto of_parts = [&](std::size_t parts) {
    for (const Candidate& candidate : whole.candidates) {
      if (candidate.placed.parts.size() == parts) return candidate.max_memory;
    }
    return std::int64_t{0};
  };
  ASSERT_LT(of_parts(2), of_parts(1));
  const SearchResult result = search_on(planned, 2, of_parts(1) - 1);
  EXPECT_TRUE(result.candidates[0].fits);
  EXPECT_EQ(result.candidates[0].placed.parts.size(), 2);
  EXPECT_EQ(result.why_not_more_parts, "each rank has a part of its own: more parts need more ranks");
  EXPECT_FALSE(result.candidates[1].fits);
}

TEST(Search, NumbersOfPartsAreFew) {
  EXPECT_EQ(numbers_of_parts(1), (std::vector<int>{1}));
  EXPECT_EQ(numbers_of_parts(4), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(numbers_of_parts(34),
            (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 28, 32, 34}));
  EXPECT_LT(numbers_of_parts(4096).size(), 60);
}

// No step is shorter than its lower bound, so those that are not simulated are not among the best.
TEST(Search, KeepsTheTenBestAndTheJobsOwn) {
  Planned planned([](GraphBuilder& b) { chain(b, 16); }, 16);
  planned.job.parallel.parts = 14;
  const SearchResult result = search_on(planned, 16, std::int64_t{1} << 40);
  ASSERT_EQ(result.candidates.size(), 10);
  EXPECT_EQ(result.more, 6);
  EXPECT_TRUE(std::any_of(result.candidates.begin(), result.candidates.end(), [](const auto& of) { return of.own; }));
  double last = 0;
  const RankSetup ranks = ranks_of_one_host(16, 1, 64);
  for (const Candidate& candidate : result.candidates) {
    EXPECT_TRUE(candidate.simulated);
    EXPECT_GE(candidate.time.seconds, last);
    last = candidate.time.seconds;
    const PlacedModel again = place_model(*planned.model, ranks, candidate.placed.choice);
    EXPECT_DOUBLE_EQ(candidate.time.seconds, time_of(again, planned.time(16)).seconds);
    EXPECT_LE(least_time_of(again, planned.time(16)), candidate.time.seconds);
  }
}

TEST(Search, SaysThatLayersAreOut) {
  const Planned planned([](GraphBuilder& b) { chain(b, 2); });
  const SearchResult result = search_on(planned, 4, std::int64_t{1} << 40);
  EXPECT_LE(result.candidates.back().placed.parts.size(), 3);
  for (const Candidate& candidate : result.candidates) EXPECT_LE(candidate.placed.parts.size(), 3);
}

TEST(Limits, WhoHasNoRoom) {
  EXPECT_EQ(first_without_room({{10, 0}, {10, 10}}), -1);
  EXPECT_EQ(first_without_room({{10, 20}, {10, 9}}), 1);
}

TEST(Limits, RefusalNamesWhatFits) {
  const Planned planned([](GraphBuilder& b) { chain(b, 8); });
  const RankSetup ranks = ranks_of_one_host(2, 1, 64);
  const Nearest nearest = least_memory(*planned.memory, ranks, false);
  EXPECT_EQ(nearest.overrides, "parallel.parts=2 recompute=never");
  EXPECT_LE(least_memory(*planned.memory, ranks, true).least, nearest.least);
  const PlacedModel placed = planned.place(2, 1);
  const std::string text = refusal("rank 1 on a", {nearest.least + 1, nearest.least}, "the limit of its cgroup", placed,
                                   memory_of(placed, *planned.memory), nearest);
  EXPECT_NE(text.find("rank 1 on a: expected room for 0.0 MiB at least (1 part, recompute: never), found 0.0 MiB, "
                      "the limit of its cgroup; try parallel.parts=2 recompute=never, which needs 0.0 MiB at least\n"),
            std::string::npos)
      << text;
}

TEST(Limits, RemedyNamesALayerThatFitsNowhere) {
  const Planned planned([](GraphBuilder& b) { chain(b, 8); });
  const Graph& graph = planned.memory->model.graph;
  EXPECT_EQ(remedy(graph, std::int64_t{1} << 30),
            "try more ranks, more micro-batches of fewer samples, or a smaller model");
  const std::string text = remedy(graph, 1);
  EXPECT_TRUE(text.starts_with("linear '")) << text;
  EXPECT_TRUE(
      text.ends_with(" alone takes 0.0 MiB, with its weights, what it reads and what it makes, and no part is "
                     "smaller than a layer: try more memory, more micro-batches of fewer samples, or a smaller layer"))
      << text;
}

TEST(Devices, FasterOnesGetMoreMicroBatches) {
  const Planned planned([](GraphBuilder& b) { chain(b, 4); });
  RankSetup ranks = ranks_of_one_host(2, 1, 64);
  ranks.speeds = {3, 1};
  const PlacedModel placed = place_model(*planned.model, ranks, {});
  EXPECT_EQ(placed.micro_batches_of(0).size(), 6);
  EXPECT_EQ(placed.micro_batches_of(1).size(), 2);
}

TEST(Measure, EveryKernelTakesTime) {
  const Planned planned(exec::residual);
  OptimizerRegistry optimizers;
  OptimizerDef plain;
  plain.name = "sgd";
  plain.update = [](const Attributes&, const UpdateStep&) {
    return [](const ParameterRun& run) {
      for (std::size_t i = 0; i < run.parameter.size(); ++i) run.parameter[i] -= run.gradient[i];
    };
  };
  optimizers.add(std::move(plain));
  const MeasuredGraph measured = measure_graph(planned.graph, planned.device, planned.job, optimizers, {2, 0.01});
  ASSERT_EQ(measured.nodes.size(), planned.graph.nodes.size());
  EXPECT_GE(measured.micro_batches, 2);
  EXPECT_GT(measured.update, 0);
  for (std::size_t n = 0; n < measured.nodes.size(); ++n) {
    if (planned.graph.nodes[n].op->view) continue;
    EXPECT_GT(measured.nodes[n].forward, 0) << planned.graph.nodes[n].name;
  }
}

TEST(Report, RanksAlikeShareARow) {
  RankMemory one, two;
  one.parameters = 3 << 20;
  two.parameters = 2 << 20;
  two.gradients = 1 << 20;
  EXPECT_EQ(memory_table({one, one, two}),
            "  MiB, rank  parameters  gradients  total\n"
            "  0-1               3.0        0.0    3.0\n"
            "  2                 2.0        1.0    3.0\n");
}

}  // namespace

}  // namespace lockstep::plan
