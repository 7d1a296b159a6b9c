// Small nets that are hard to cut into parts: skip connections, weights shared by parts, towers side by side, a value
// that many nodes use.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/precision.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"

namespace lockstep::exec {

inline constexpr std::int64_t kSamples = 4;

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

inline void finish(GraphBuilder& b, ValueId x, const char* metric) {
  const ValueId label = b.input("label", {DType::i32, Shape(b.spec(x).shape.begin() + 1, b.spec(x).shape.end() - 1)});
  b.graph().output = x;
  b.graph().loss = b.add_node("cross_entropy", {x, label}, {}, "loss");
  b.graph().metrics.push_back(b.add_node(metric, {x, label}, {}, metric));
}

inline Attributes one(const char* name, std::int64_t value) {
  return Attributes({{name, value}});
}

inline void residual(GraphBuilder& b) {
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

inline void transformer(GraphBuilder& b) {
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

/// The head uses the embedding's weight.
inline void tied(GraphBuilder& b) {
  ValueId x = b.apply("embedding", {b.input("tokens", {DType::i32, {6}})},
                      Attributes({{"vocabulary", std::int64_t{10}}, {"width", std::int64_t{16}}}), "tokens");
  ValueId y = b.apply("gelu", {b.apply("linear", {b.apply("layer_norm", {x})}, one("features", 16))});
  x = b.apply("layer_norm", {b.apply("add", {x, y})});
  finish(
      b,
      b.apply("linear", {x},
              Attributes({{"features", std::int64_t{10}}, {"bias", false}, {"tied", std::string("tokens")}}), "head"),
      "perplexity");
}

/// Two inputs, each with a tower of the same weights; the end of a block is joined with its neighbor's.
inline void towers(GraphBuilder& b) {
  std::vector<ValueId> ends;
  for (const std::string side : {"left", "right"}) {
    const auto attributes = [&](Attributes own, const std::string& node) {
      if (side == "right") own.set("tied", "left." + node);
      return own;
    };
    b.begin_part(side);
    ValueId x = b.input(side, {DType::f32, {12, 12, 1}});
    x = b.apply("conv", {x}, Attributes({{"filters", std::int64_t{8}}, {"kernel", std::int64_t{3}}}), side + ".conv");
    x = b.apply("relu", {b.apply("batch_norm", {x}, {}, side + ".norm")}, {}, side + ".relu");
    x = b.apply("flatten", {b.apply("max_pool", {x}, one("kernel", 2))}, {}, side + ".flat");
    ends.push_back(b.apply("linear", {x}, attributes(one("features", 16), "linear"), side + ".linear"));
  }
  b.begin_part("head");
  const ValueId x = b.apply("relu", {b.apply("add", ends)}, {}, "joined");
  finish(b, b.apply("linear", {x}, one("features", 10)), "accuracy");
}

/// One value is used by many nodes, whose parts may be side by side.
inline void fan(GraphBuilder& b) {
  const ValueId x = b.apply("linear", {b.input("image", {DType::f32, {12}})}, one("features", 8));
  ValueId sum = x;
  for (int i = 0; i < 6; ++i) {
    const ValueId y = b.apply("tanh", {b.apply("linear", {x}, one("features", 8))});
    sum = b.apply("add", {sum, b.apply("mul", {y, x})});
  }
  finish(b, b.apply("linear", {sum}, one("features", 10)), "accuracy");
}

/// All of the above, by name.
inline const std::map<std::string, std::function<void(GraphBuilder&)>>& nets() {
  static const std::map<std::string, std::function<void(GraphBuilder&)>> kNets{
      {"residual", residual}, {"transformer", transformer}, {"tied", tied}, {"towers", towers}, {"fan", fan}};
  return kNets;
}

}  // namespace lockstep::exec
