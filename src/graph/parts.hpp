// Parts: a graph cut into pieces that are computed on different ranks, each a graph of its own, with the bits of the
// whole one.
//
// The gradient of a value is a sum over its uses, in reverse graph order (graph/compile.cpp). Floating-point sums
// depend on their association, so in general parts may not add their own uses first and then each other's sums. So a
// part adds its own uses of a received value only as far as they come first in that order; it sends each later one
// separately, and the part that made the value adds all of them in the order of the whole graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/gradient_flow.hpp"
#include "lockstep/graph.hpp"

namespace lockstep {

/// What compile() needs to know about a part. Values and nodes are the part's own.
struct PartBoundary {
  /// A value that another part makes.
  struct Received {
    ValueId value = -1;
    std::int32_t sum_from = 0;  ///< uses by this node and later ones are added, and sent as one gradient
  };
  /// A gradient that another part sends.
  struct Arrival {
    ValueId value = -1;
    std::int32_t before = 0;  ///< it is added after the gradients of this node and later ones, before those of earlier
                              ///< ones
  };

  GradientFlow flow;  ///< of the whole graph
  std::vector<Received> received;
  std::vector<ValueId> sent;  ///< activations that other parts read
  std::vector<Arrival> arrivals;
};

struct GraphPart {
  /// The origin of something: an entry in a list of another part.
  struct Source {
    int part = 0;
    std::size_t index = 0;  ///< for a received value: in the other's `sent`; for an arrival: in its `received`
    std::size_t term = 0;   ///< for an arrival: which of the gradients sent for that value
  };

  Graph graph;
  PartBoundary boundary;
  std::vector<std::int32_t> nodes;                      ///< by node: its index in the whole graph
  std::vector<std::size_t> inputs, parameters, states;  ///< by entry of the part's list: index in the whole graph's
                                                        ///< list
  std::vector<Source> received_from, arrives_from;      ///< by entry of the boundary's lists
};

/// `part_of_node`: for each node, a number from 0; the result has a part for each number up to the highest. Each part
/// that uses a weight lists it, and has the gradients of its own uses. Throws Error(configuration) that names layers if
/// two parts would wait for each other, or a part is empty.
[[nodiscard]] std::vector<GraphPart> split(const Graph& graph, const std::vector<int>& part_of_node);

/// Throws split()'s error if two parts would wait for each other. `names`: of the parts; empty: their numbers.
void check_order(const Graph& graph, const std::vector<int>& part_of_node, const std::vector<std::string>& names = {});

}  // namespace lockstep
