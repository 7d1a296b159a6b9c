// A graph cut into parts, each run by itself as on a rank of its own, makes the bits of the whole one: losses, metrics,
// gradients and statistics.
#include "graph/parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "exec/cpu_device.hpp"
#include "exec/kernel_set.hpp"
#include "exec/shard_runner.hpp"
#include "graph/precision.hpp"
#include "graph/program.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"

namespace lockstep::exec {

namespace {

constexpr std::int64_t kSamples = 4;

/// What a shard gives, by name.
using Made = std::map<std::string, std::vector<float>>;
using Tensors = std::vector<std::vector<std::byte>>;

std::vector<const void*> pointers(const Tensors& tensors) {
  std::vector<const void*> list;
  for (const auto& tensor : tensors) list.push_back(tensor.data());
  return list;
}

/// Values by the name of an input, parameter or state: the same in whichever graph it stands.
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

/// A compiled graph, or part of one, with the memory of a shard.
class Piece {
 public:
  Piece(const Graph& graph, const CpuDevice& device, int worker, CompileOptions options)
      : graph_(graph),
        program_(compiled(graph, device, options)),
        runner_(program_, KernelSet(graph, Mode::training, device, worker)),
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
    (void)runner_.begin();
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
      made[(gradient ? "gradient of " : "statistic of ") + graph_.at(id).name] = made_[s];
    }
  }

 private:
  static Program compiled(const Graph& graph, const CpuDevice& device, CompileOptions options) {
    const KernelSet kernels(graph, Mode::training, device);
    return compile(
        graph, Mode::training, [&](std::int32_t node) { return kernels.workspace_bytes(node); }, options);
  }
  [[nodiscard]] ShardOperands operands() const {
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
  ShardRunner runner_;
  Tensors inputs_, parameters_, states_;
  std::vector<const void*> input_pointers_, received_, arrived_;
  std::vector<std::vector<float>> made_;
  std::vector<SlotMemory> slots_;
  ModelView model_;
  StepContext context_;
};

Made run_whole(const Graph& graph) {
  const CpuDevice device;
  Piece piece(graph, device, 0, {});
  piece.forward({});
  piece.backward({});
  Made made;
  piece.results(made);
  return made;
}

/// Values of a part that are on their way, as a rank would get them.
struct Traffic {
  Tensors received, arrived;
};

Made run_parts(const std::vector<GraphPart>& parts, bool recompute_blocks) {
  const CpuDevice device;
  std::vector<std::unique_ptr<Piece>> pieces;
  std::vector<Traffic> traffic(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    pieces.push_back(
        std::make_unique<Piece>(parts[p].graph, device, static_cast<int>(p),
                                CompileOptions{.recompute_blocks = recompute_blocks, .boundary = &parts[p].boundary}));
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
  for (std::size_t p = parts.size(); p-- > 0;) {
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

/// Parts in the order of the graph, so that none waits for a later one; several may be under way side by side.
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

struct Net {
  explicit Net(const std::function<void(GraphBuilder&)>& build, DType precision = DType::f32) {
    ops::add_built_in(ops);
    GraphBuilder builder(ops, kSamples);
    build(builder);
    graph = std::move(builder.graph());
    set_precision(graph, precision);
  }
  OpRegistry ops;
  Graph graph;
};

void finish(GraphBuilder& b, ValueId x, const char* metric) {
  const ValueId label = b.input("label", {DType::i32, Shape(b.spec(x).shape.begin() + 1, b.spec(x).shape.end() - 1)});
  b.graph().output = x;
  b.graph().loss = b.add_node("cross_entropy", {x, label}, {}, "loss");
  b.graph().metrics.push_back(b.add_node(metric, {x, label}, {}, metric));
}

Attributes one(const char* name, std::int64_t value) {
  return Attributes({{name, value}});
}

void residual(GraphBuilder& b) {
  ValueId x = b.apply("conv", {b.input("image", {DType::f32, {12, 12, 1}})},
                      Attributes({{"filters", std::int64_t{8}}, {"kernel", std::int64_t{3}}}));
  for (const char* block : {"first", "second"}) {
    b.begin_block(block);
    ValueId y = b.apply("conv", {x}, Attributes({{"filters", std::int64_t{8}}, {"kernel", std::int64_t{3}}}));
    y = b.apply("relu", {b.apply("batch_norm", {y})});
    y = b.apply("dropout", {y}, Attributes({{"rate", 0.25}}));
    x = b.apply("relu", {b.apply("add", {y, x})});
  }
  b.begin_block("");
  x = b.apply("flatten", {b.apply("max_pool", {x}, one("kernel", 2))});
  finish(b, b.apply("linear", {x}, one("features", 10)), "accuracy");
}

void transformer(GraphBuilder& b) {
  ValueId x = b.apply("embedding", {b.input("tokens", {DType::i32, {6}})},
                      Attributes({{"vocabulary", std::int64_t{10}}, {"width", std::int64_t{16}}}));
  x = b.apply("position_embedding", {x});
  for (const char* block : {"block1", "block2"}) {
    b.begin_block(block);
    ValueId y = b.apply("linear", {b.apply("layer_norm", {x})}, one("features", 48));
    y = b.apply("attention", {y}, Attributes({{"heads", std::int64_t{2}}, {"causal", true}}));
    x = b.apply("add", {x, b.apply("linear", {y}, one("features", 16))});
    y = b.apply("gelu", {b.apply("linear", {b.apply("layer_norm", {x})}, one("features", 32))});
    x = b.apply("add",
                {x, b.apply("dropout", {b.apply("linear", {y}, one("features", 16))}, Attributes({{"rate", 0.1}}))});
  }
  b.begin_block("");
  finish(b, b.apply("linear", {b.apply("layer_norm", {x})}, one("features", 10)), "perplexity");
}

/// One value is used by many nodes, whose parts may lie side by side.
void fan(GraphBuilder& b) {
  const ValueId x = b.apply("linear", {b.input("image", {DType::f32, {12}})}, one("features", 8));
  ValueId sum = x;
  for (int i = 0; i < 6; ++i) {
    const ValueId y = b.apply("tanh", {b.apply("linear", {x}, one("features", 8))});
    sum = b.apply("add", {sum, b.apply("mul", {y, x})});
  }
  finish(b, b.apply("linear", {sum}, one("features", 10)), "accuracy");
}

}  // namespace

class PartsMakeTheBits : public testing::TestWithParam<std::tuple<std::string, DType>> {};

TEST_P(PartsMakeTheBits, OfTheWholeGraph) {
  const auto& [name, precision] = GetParam();
  const Net net(name == "residual" ? residual : name == "transformer" ? transformer : fan, precision);
  const Made whole = run_whole(net.graph);
  ASSERT_GT(whole.size(), net.graph.parameters.size());
  std::mt19937 random(5);
  std::size_t separate = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const std::vector<int> part_of_node = random_parts(net.graph, 2 + trial % 5, random);
    const auto parts = split(net.graph, part_of_node);
    for (const auto& part : parts) {
      for (const auto& [from, index, term] : part.arrives_from) separate += term > 0 ? 1 : 0;
    }
    const Made made = run_parts(parts, trial % 2 == 1);
    ASSERT_EQ(made.size(), whole.size());
    for (const auto& [what, values] : whole) {
      ASSERT_EQ(made.at(what).size(), values.size()) << what;
      ASSERT_EQ(std::memcmp(made.at(what).data(), values.data(), values.size() * sizeof(float)), 0)
          << what << ", trial " << trial << ": " << testing::PrintToString(part_of_node);
    }
  }
  EXPECT_EQ(separate > 0, name == "fan");
}

INSTANTIATE_TEST_SUITE_P(All, PartsMakeTheBits,
                         testing::Combine(testing::Values("residual", "transformer", "fan"),
                                          testing::Values(DType::f32, DType::bf16)));

// The last kernel of the first part could write over what it is the last to read there, but that is sent, too.
TEST(Parts, WhatIsSentIsNotWrittenOver) {
  const Net net([](GraphBuilder& b) {
    const ValueId x = b.apply("linear", {b.input("image", {DType::f32, {12}})}, one("features", 10));
    finish(b, b.apply("add", {x, b.apply("tanh", {x})}), "accuracy");
  });
  EXPECT_EQ(run_parts(split(net.graph, {0, 0, 1, 1, 1}), false), run_whole(net.graph));
}

TEST(Parts, NameWhatKeepsAGraphFromBeingSplit) {
  const Net net([](GraphBuilder& b) {
    ValueId x = b.apply("linear", {b.input("image", {DType::f32, {12}})}, one("features", 12), "first");
    x = b.apply("linear", {b.apply("relu", {x}, {}, "between")},
                Attributes({{"features", std::int64_t{12}}, {"tied", std::string("first")}}), "last");
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
  EXPECT_EQ(error({0, 0, 1, 1, 1}),
            "'last' of part 1 uses first.weight of part 0; layers that share a weight must be in one part");
  EXPECT_EQ(error({0, 0, 0, 2, 2}), "part 1 has no layer");
}

}  // namespace lockstep::exec
