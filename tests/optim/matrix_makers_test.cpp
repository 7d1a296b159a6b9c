// MatrixMakers: who makes the step of which matrix. MatrixExchange: who gets what of it, on one host and on several.
#include "step/optim/matrix_makers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "comm/reduce/gradient_buckets.hpp"
#include "lockstep/communicator.hpp"
#include "optim/updater_bench.hpp"
#include "step/exec/executor.hpp"
#include "step/optim/cpu_updater.hpp"
#include "step/optim/matrix_exchange.hpp"
#include "step/optim/registry.hpp"

namespace lockstep::optim {

namespace {

Graph matrices_of(const std::vector<Shape>& shapes) {
  Graph graph;
  for (const Shape& shape : shapes) {
    Value value;
    value.name = "weight" + std::to_string(graph.parameters.size());
    value.spec = {DType::f32, shape};
    value.matrix = shape.size() > 1;
    graph.parameters.push_back(static_cast<ValueId>(graph.values.size()));
    graph.values.push_back(value);
  }
  return graph;
}

MatrixMakers makers_of(const Graph& graph, const std::string& kind, int ranks) {
  OptimizerRegistry registry;
  add_built_in(registry);
  const OptimizerDef& optimizer = registry.at(kind);
  return {graph, optimizer, settings_of(optimizer, {kind, {}}), ranks};
}

/// Cuts each parameter into as many slices as there are ranks, at odd places.
MatrixMakers::Owned cut_matrices(const Graph& graph, int ranks) {
  MatrixMakers::Owned owned(graph.parameters.size());
  for (std::size_t p = 0; p < owned.size(); ++p) {
    const std::int64_t elements = graph.at(graph.parameters[p]).spec.elements();
    for (int rank = 0; rank < ranks; ++rank) {
      const exec::Extent extent{elements * rank / ranks, elements * (rank + 1) / ranks};
      if (extent.begin < extent.end) {
        owned[p].push_back(
            {extent, static_cast<int>((static_cast<std::size_t>(rank) + p) % static_cast<std::size_t>(ranks))});
      }
    }
  }
  return owned;
}

float value_of(std::size_t parameter, std::int64_t element) {
  return static_cast<float>(parameter * 100'000) + static_cast<float>(element);
}

void write(const exec::TensorBlock& block, std::size_t parameter, const exec::Extent& extent, float sign) {
  for (std::int64_t i = extent.begin; i < extent.end; ++i) {
    block.at(parameter)[static_cast<std::size_t>(i)] = sign * value_of(parameter, i);
  }
}

std::int64_t count_wrong(const exec::TensorBlock& block, std::size_t parameter, const exec::Extent& extent,
                         float sign) {
  std::int64_t wrong = 0;
  for (std::int64_t i = extent.begin; i < extent.end; ++i) {
    wrong += block.at(parameter)[static_cast<std::size_t>(i)] == sign * value_of(parameter, i) ? 0 : 1;
  }
  return wrong;
}

}  // namespace

// By elements, the tall matrix would weigh as much as the square one.
TEST(MatrixMakers, BalanceOperations) {
  const Graph graph = matrices_of({{8, 8192}, {256, 256}, {192, 256}, {64}, {200, 200}});
  const MatrixMakers makers = makers_of(graph, "muon", 2);
  EXPECT_EQ(makers.matrices(), (std::vector<std::size_t>{1, 2, 4, 0}));
  EXPECT_EQ(makers.made_by(0), (std::vector<std::size_t>{1}));
  EXPECT_EQ(makers.made_by(1), (std::vector<std::size_t>{2, 4, 0}));
  EXPECT_EQ(makers.operations(0), 5 * 6.0 * 256 * 256 * 256);
}

TEST(MatrixMakers, HaveAboutEqualShares) {
  std::vector<Shape> shapes;
  for (int layer = 0; layer < 12; ++layer) {
    for (const std::int64_t rows : {2304, 768, 3072}) shapes.push_back({rows, 768});
    shapes.push_back({768, 3072});
  }
  const Graph graph = matrices_of(shapes);
  for (const int ranks : {2, 3, 8}) {
    const MatrixMakers makers = makers_of(graph, "muon", ranks);
    double sum = 0, most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      sum += makers.operations(rank);
      most = std::max(most, makers.operations(rank));
    }
    EXPECT_LT(most, 1.1 * sum / ranks) << ranks;
  }
}

// What is cheap, or has states that all ranks keep.
TEST(MatrixMakers, AreAllRanksOfAdafactor) {
  const Graph graph = matrices_of({{8, 16}, {5}});
  const MatrixMakers makers = makers_of(graph, "adafactor", 3);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(makers.made_by(rank), (std::vector<std::size_t>{0}));
  EXPECT_TRUE(makers.steps(nullptr).empty());
  const auto owned = cut_matrices(graph, 3);
  for (const MatrixTransfer& transfer : makers.directions(&owned)) EXPECT_EQ(transfer.to, MatrixTransfer::kAll);
}

TEST(MatrixMakers, HoldWhatTheyMakeAndWhatTheyOwn) {
  const Graph graph = matrices_of({{30, 30}, {20, 20}, {10}});
  const MatrixMakers makers = makers_of(graph, "muon", 2);
  EXPECT_EQ(makers.held_elements(0, nullptr), 1'300);
  const auto owned = cut_matrices(graph, 2);
  EXPECT_EQ(makers.held_elements(0, &owned), 900 + 200);
  EXPECT_EQ(makers.held_elements(1, &owned), 450 + 400);
}

TEST(MatrixExchange, GivesMakersDirectionsAndOwnersSteps) {
  const Graph graph = matrices_of({{30, 31}, {20, 20}, {1, 1}, {7, 9}, {7, 9}, {10}});
  for (const auto& hosts : {std::vector<int>{0}, {0, 0}, {0, 1}, {0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 0, 1, 2}}) {
    for (const char* kind : {"muon", "adafactor"}) {
      const int ranks = static_cast<int>(hosts.size());
      const MatrixMakers makers = makers_of(graph, kind, ranks);
      const MatrixMakers::Owned slices = cut_matrices(graph, ranks);
      for (const MatrixMakers::Owned* owned : {static_cast<const MatrixMakers::Owned*>(nullptr), &slices}) {
        run_in_threads(
            ranks,
            [&](Communicator& group) {
              const comm::Hosts of(group.topology());
              const exec::TensorBlock block(graph, graph.parameters, makers.held(group.rank(), owned));
              const auto for_own = [&](const auto& call) {
                for (const std::size_t p : makers.matrices()) {
                  if (owned == nullptr) call(p, exec::Extent{0, graph.at(graph.parameters[p]).spec.elements()});
                  for (const auto& [extent, owner] : slices[p]) {
                    if (owned != nullptr && owner == group.rank()) call(p, extent);
                  }
                }
              };
              for_own([&](std::size_t p, const exec::Extent& extent) { write(block, p, extent, 1); });
              MatrixExchange directions(group, of, makers.directions(owned), block);
              directions.send_all();
              directions.finish({"directions", 0});
              MatrixExchange steps(group, of, makers.steps(owned), block);
              for (const std::size_t p : makers.made_by(group.rank())) {
                const exec::Extent whole{0, graph.at(graph.parameters[p]).spec.elements()};
                EXPECT_EQ(count_wrong(block, p, whole, 1), 0) << "direction";
                write(block, p, whole, -1);
                steps.send(p);
              }
              steps.finish({"steps", 0});
              for_own([&](std::size_t p, const exec::Extent& extent) {
                EXPECT_EQ(count_wrong(block, p, extent, -1), 0) << "step";
              });
            },
            hosts);
      }
    }
  }
}

// Its maker gives it to the ranks of its host and to the leaders of other hosts, which give it to theirs.
TEST(MatrixExchange, SendsAStepOnceToEachOtherHost) {
  const Graph graph = matrices_of({{32, 32}});
  const MatrixMakers makers = makers_of(graph, "muon", 6);
  std::vector<std::uint64_t> sent(6);
  run_in_threads(6,
                 [&](Communicator& group) {
                   const comm::Hosts of(group.topology());
                   const exec::TensorBlock block(graph, graph.parameters);
                   MatrixExchange steps(group, of, makers.steps(nullptr), block);
                   if (group.rank() == 0) steps.send(0);
                   steps.finish({"steps", 0});
                   sent[static_cast<std::size_t>(group.rank())] =
                       group.traffic().network_bytes / (sizeof(float) * 32 * 32);
                 },
                 {0, 0, 0, 1, 1, 1});
  EXPECT_EQ(sent, (std::vector<std::uint64_t>{3, 0, 0, 2, 0, 0}));
}

TEST(MatrixSteps, AreMadeOnceHoweverManyRanks) {
  for (const int ranks : {1, 2, 3}) {
    std::atomic<int> made{0};
    run_in_threads(ranks, [&](Communicator& group) {
      UpdaterBench bench;
      OptimizerDef counted = bench.optimizers.at("muon");
      counted.name = "counted";
      counted.matrix_step = [&made, of = counted.matrix_step](const Attributes& settings, const UpdateStep& step) {
        MatrixStep how = of(settings, step);
        how.transform = [&made, transform = how.transform](auto... arguments) {
          ++made;
          transform(arguments...);
        };
        return how;
      };
      bench.optimizers.add(counted);
      (void)bench.on_ranks(group, {"counted", {}});
    });
    EXPECT_EQ(made, 2 * kUpdaterSteps) << ranks << " ranks";
  }
}

}  // namespace lockstep::optim
