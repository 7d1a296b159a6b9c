// A graph cut into parts, each run separately as on its own rank, gives the bits of the whole one: losses, metrics,
// gradients and statistics. The graph is cut after lowering, at random and as jobs request.
#include "graph/parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "exec/part_nets.hpp"
#include "graph/cut.hpp"
#include "graph/program.hpp"
#include "lockstep/error.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/exec/kernel_set.hpp"
#include "step/exec/micro_batch_runner.hpp"

namespace lockstep::exec {

namespace {

/// The results of a micro-batch, by name. A tied weight has a gradient for each use.
using Made = std::map<std::string, std::vector<float>>;
using Tensors = std::vector<std::vector<std::byte>>;

std::vector<const void*> pointers(const Tensors& tensors) {
  std::vector<const void*> list;
  for (const auto& tensor : tensors) list.push_back(tensor.data());
  return list;
}

/// Values by the name of an input, parameter or state: the same in every graph that contains it.
Tensors values_of(const Graph& graph, const std::vector<ValueId>& ids) {
  Tensors tensors;
  for (const ValueId id : ids) {
    const Value& value = graph.at(id);
    auto& bytes = tensors.emplace_back(value.spec.bytes());
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(value.name)));
    for (std::int64_t i = 0; i < value.spec.elements(); ++i) {
      if (value.spec.dtype == DType::i32) {
        const auto token = static_cast<std::int32_t>(random() % 10);
        std::memcpy(bytes.data() + i * 4, &token, 4);
      } else {
        const float spread = value.role == Role::input ? 1.0F : 0.3F;
        const float number = spread * (static_cast<float>(random() % 2001) / 1000.0F - 1) + (value.role == Role::state);
        std::memcpy(bytes.data() + i * 4, &number, 4);
      }
    }
  }
  return tensors;
}

/// A compiled graph, or part of one, with the memory of a micro-batch.
class Piece {
 public:
  Piece(const Graph& graph, const CpuDevice& device, int worker, Mode mode, CompileOptions options)
      : graph_(graph),
        program_(compiled(graph, device, mode, options)),
        runner_(program_, KernelSet(graph, mode, device, worker)),
        inputs_(values_of(graph, graph.inputs)),
        parameters_(values_of(graph, graph.parameters)),
        states_(values_of(graph, graph.states)) {
    for (const Slot& slot : program_.slots) made_.emplace_back(static_cast<std::size_t>(slot.elements));
    for (auto& slot : made_) slots_.push_back({slot.data(), false});
    for (const void* p : pointers(parameters_)) model_.parameters.push_back(static_cast<const float*>(p));
    for (const void* p : pointers(states_)) model_.states.push_back(static_cast<const float*>(p));
    model_.low_precision.resize(model_.parameters.size());
    input_pointers_ = pointers(inputs_);
    context_ = {.seed = 7, .step = 3, .first_position = 8, .parameters_version = 1};
  }

  void forward(std::vector<const void*> received) {
    received_ = std::move(received);
    runner_.begin();
    for (std::int32_t i = 0; i < program_.forward_end; ++i) runner_.run(static_cast<std::size_t>(i), operands());
  }
  void backward(std::vector<const void*> arrived) {
    arrived_ = std::move(arrived);
    for (auto i = static_cast<std::size_t>(program_.forward_end); i < program_.instructions.size(); ++i) {
      runner_.run(i, operands());
    }
  }
  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] std::vector<std::byte> copy(const Location& location, std::size_t bytes) const {
    const auto* const from = static_cast<const std::byte*>(runner_.at(location, operands()));
    return {from, from + bytes};
  }

  void results(Made& made) const {
    const auto add = [&](const std::string& name, const Location& location) {
      const float* const values = runner_.result(location);
      made[name].assign(values, values + kSamples);
    };
    if (graph_.loss >= 0) add("loss", program_.results.loss);
    for (std::size_t m = 0; m < graph_.metrics.size(); ++m) {
      add(graph_.nodes[static_cast<std::size_t>(graph_.metrics[m])].name, program_.results.metrics[m].first);
    }
    for (std::size_t s = 0; s < program_.slots.size(); ++s) {
      const Slot& slot = program_.slots[s];
      const auto target = static_cast<std::size_t>(slot.target);
      const bool gradient = slot.kind == Slot::Kind::gradient;
      const ValueId id = gradient ? graph_.parameters[target] : graph_.states[target];
      made[(gradient ? "gradient of " : "statistic of ") + graph_.at(id).name + " by " + writer_of(s)] = made_[s];
    }
  }

 private:
  [[nodiscard]] std::string writer_of(std::size_t slot) const {
    const Location place{Space::slot, static_cast<std::int64_t>(slot)};
    for (const Instruction& instruction : program_.instructions) {
      for (const auto* list : {&instruction.parameter_gradients, &instruction.statistics}) {
        if (std::find(list->begin(), list->end(), place) == list->end()) continue;
        return graph_.nodes[static_cast<std::size_t>(instruction.node)].name;
      }
    }
    return "none";
  }
  static Program compiled(const Graph& graph, const CpuDevice& device, Mode mode, CompileOptions options) {
    const KernelSet kernels(graph, mode, device);
    if (options.can_recompute) options.can_recompute = [&](auto node) { return kernels.at(node)->can_recompute(); };
    return compile(
        graph, mode, [&](std::int32_t node) { return kernels.workspace_bytes(node); }, options);
  }
  [[nodiscard]] MicroBatchOperands operands() const {
    return {.inputs = input_pointers_,
            .model = model_,
            .slots = slots_,
            .context = &context_,
            .step = context_.step,
            .received = received_,
            .arrived = arrived_};
  }

  const Graph& graph_;
  Program program_;
  MicroBatchRunner runner_;
  Tensors inputs_, parameters_, states_;
  std::vector<const void*> input_pointers_, received_, arrived_;
  std::vector<std::vector<float>> made_;
  std::vector<SlotMemory> slots_;
  ModelView model_;
  StepContext context_;
};

Made run_whole(const Graph& graph, Mode mode = Mode::training) {
  const CpuDevice device;
  Piece piece(graph, device, 0, mode, {});
  piece.forward({});
  piece.backward({});
  Made made;
  piece.results(made);
  return made;
}

/// Values sent between parts, as ranks would receive them.
struct Traffic {
  Tensors received, arrived;
};

Made run_parts(const std::vector<GraphPart>& parts, Recompute recompute, Mode mode = Mode::training) {
  const CpuDevice device;
  std::vector<std::unique_ptr<Piece>> pieces;
  std::vector<Traffic> traffic(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    CompileOptions options{.recompute_blocks = recompute == Recompute::blocks, .boundary = &parts[p].boundary};
    if (recompute == Recompute::cheap) options.can_recompute = [](std::int32_t) { return true; };  // as kernels report
    pieces.push_back(std::make_unique<Piece>(parts[p].graph, device, static_cast<int>(p), mode, options));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (const auto& [from, index, term] : parts[p].received_from) {
      const auto other = static_cast<std::size_t>(from);
      const ValueId id = parts[other].boundary.sent[index];
      traffic[p].received.push_back(
          pieces[other]->copy(pieces[other]->program().sent[index], parts[other].graph.at(id).spec.bytes()));
    }
    pieces[p]->forward(pointers(traffic[p].received));
  }
  for (std::size_t p = mode == Mode::training ? parts.size() : 0; p-- > 0;) {
    for (const auto& [from, index, term] : parts[p].arrives_from) {
      const auto other = static_cast<std::size_t>(from);
      const ValueId id = parts[other].boundary.received[index].value;
      traffic[p].arrived.push_back(pieces[other]->copy(pieces[other]->program().received_gradients[index].at(term),
                                                       parts[other].graph.at(id).spec.bytes()));
    }
    pieces[p]->backward(pointers(traffic[p].arrived));
  }
  Made made;
  for (const auto& piece : pieces) piece->results(made);
  return made;
}

bool is_joined(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return node.epilogue != nullptr; });
}

/// Parts in the order of the graph, so that none waits for a later one; several may be in flight side by side.
std::vector<int> random_parts(const Graph& graph, int most, std::mt19937& random) {
  std::vector<int> part(graph.nodes.size());
  for (std::size_t n = 0; n < part.size(); ++n) {
    int least = 0;
    for (const ValueId id : graph.nodes[n].inputs) {
      const std::int32_t producer = graph.at(id).producer;
      if (producer >= 0) least = std::max(least, part[static_cast<std::size_t>(producer)]);
    }
    part[n] = std::min(most - 1, least + (random() % 4 == 0 ? 1 : 0));
  }
  std::vector<int> used(part);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (int& p : part) p = static_cast<int>(std::lower_bound(used.begin(), used.end(), p) - used.begin());
  return part;
}

constexpr std::array kRecompute{Recompute::never, Recompute::cheap, Recompute::blocks};

void expect_bits(const Made& made, const Made& whole, const std::vector<int>& part_of_node) {
  ASSERT_EQ(made.size(), whole.size());
  for (const auto& [what, values] : whole) {
    ASSERT_TRUE(made.contains(what)) << what;
    ASSERT_EQ(made.at(what).size(), values.size()) << what;
    ASSERT_EQ(std::memcmp(made.at(what).data(), values.data(), values.size() * sizeof(float)), 0)
        << what << ": " << testing::PrintToString(part_of_node);
  }
}

}  // namespace

class PartsMakeTheBits : public testing::TestWithParam<std::tuple<std::string, DType, bool>> {
 protected:
  Net net_{nets().at(std::get<0>(GetParam())), std::get<1>(GetParam())};
  const Graph graph_ = CpuDevice().lower(net_.graph, std::get<2>(GetParam()));
  const Made whole_ = run_whole(graph_);
};

TEST_P(PartsMakeTheBits, CutAtRandom) {
  const std::string& name = std::get<0>(GetParam());
  ASSERT_GT(whole_.size(), graph_.parameters.size());
  EXPECT_EQ(is_joined(graph_), std::get<2>(GetParam()) && (name == "residual" || name == "towers"));
  std::mt19937 random(5);
  std::size_t separate = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const std::vector<int> part_of_node = random_parts(graph_, 2 + trial % 5, random);
    const auto parts = split(graph_, part_of_node);
    for (const auto& part : parts) {
      for (const auto& [from, index, term] : part.arrives_from) separate += term > 0 ? 1 : 0;
    }
    SCOPED_TRACE("trial " + std::to_string(trial));
    ASSERT_NO_FATAL_FAILURE(expect_bits(run_parts(parts, kRecompute[trial % 3]), whole_, part_of_node));
  }
  EXPECT_EQ(separate > 0, name == "fan");
}

TEST_P(PartsMakeTheBits, OfAnEvaluation) {
  const Made whole = run_whole(graph_, Mode::inference);
  EXPECT_EQ(whole.size(), 2u) << "the loss and a metric";
  std::mt19937 random(6);
  for (int trial = 0; trial < 10; ++trial) {
    const std::vector<int> part_of_node = random_parts(graph_, 2 + trial % 5, random);
    const Made made = run_parts(split(graph_, part_of_node), Recompute::never, Mode::inference);
    ASSERT_NO_FATAL_FAILURE(expect_bits(made, whole, part_of_node));
  }
}

TEST_P(PartsMakeTheBits, CutByCost) {
  Graph unnamed = graph_;
  for (Node& node : unnamed.nodes) node.part.clear();
  for (int count = 1; count < 6; ++count) {
    const std::vector<int> part_of_node = cut(unnamed, {.parts = count}, count);
    EXPECT_EQ(part_of_node.back(), count - 1);
    for (const Recompute recompute : kRecompute) {
      ASSERT_NO_FATAL_FAILURE(expect_bits(run_parts(split(graph_, part_of_node), recompute), whole_, part_of_node));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PartsMakeTheBits,
                         testing::Combine(testing::Values("residual", "transformer", "tied", "towers", "fan"),
                                          testing::Values(DType::f32, DType::bf16), testing::Bool()));

TEST(Parts, OfTwoTowersAreComputedSideBySide) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    const Net net(towers, precision);
    const Graph graph = CpuDevice().lower(net.graph, true);
    const Made whole = run_whole(graph);
    for (const int ranks : {1, 2, 3}) {
      for (const auto& part_of_node : {cut(graph, {.branches = true}, ranks), cut(graph, {}, ranks)}) {
        const auto parts = split(graph, part_of_node);
        EXPECT_LE(parts.size(), static_cast<std::size_t>(ranks));
        EXPECT_TRUE(parts[0].received_from.empty());
        ASSERT_NO_FATAL_FAILURE(expect_bits(run_parts(parts, Recompute::never), whole, part_of_node));
      }
    }
  }
}

TEST(Parts, EachListsAWeightThatTheyShare) {
  const Net net(tied);
  std::vector<int> part_of_node(net.graph.nodes.size(), 1);
  part_of_node[0] = 0;
  const auto parts = split(net.graph, part_of_node);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].parameters, (std::vector<std::size_t>{0}));
  EXPECT_EQ(parts[1].parameters[0], 0u);
  EXPECT_EQ(parts[1].graph.at(parts[1].graph.parameters[0]).name, "tokens.weight");
}

// The last kernel of the first part could overwrite a value that it is the last to read there, but that is also sent.
TEST(Parts, WhatIsSentIsNotWrittenOver) {
  const Net net([](GraphBuilder& b) {
    const ValueId x = b.apply("linear", {b.input("image", {DType::f32, {12}})}, one("features", 10));
    finish(b, b.apply("add", {x, b.apply("tanh", {x})}), "accuracy");
  });
  EXPECT_EQ(run_parts(split(net.graph, {0, 0, 1, 1, 1}), Recompute::never), run_whole(net.graph));
}

TEST(Parts, NameWhatKeepsAGraphFromBeingSplit) {
  const Net net([](GraphBuilder& b) {
    ValueId x = b.apply("linear", {b.input("image", {DType::f32, {12}})}, one("features", 12), "first");
    x = b.apply("linear", {b.apply("relu", {x}, {}, "between")}, one("features", 12), "last");
    finish(b, x, "accuracy");
  });
  const auto error = [&](const std::vector<int>& part_of_node) {
    try {
      (void)split(net.graph, part_of_node);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error({0, 1, 0, 1, 1}),
            "parts 0 and 1 wait for each other: 'between' of part 1 reads 'first' of part 0, and something of part 0 "
            "depends on part 1; cut where nothing leads back");
  EXPECT_EQ(error({0, 0, 0, 2, 2}), "part 1 has no layer");
}

}  // namespace lockstep::exec
