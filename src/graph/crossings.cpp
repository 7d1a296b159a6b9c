#include "graph/crossings.hpp"

#include <algorithm>
#include <cstdint>

namespace lockstep {

namespace {

/// Sums of work over a part's nodes.
class Work {
 public:
  Work(const WorkOfNode& of_node, int part, const GraphPart& graph)
      : of_node_(of_node), part_(part), count_(graph.graph.nodes.size()) {}

  double before(std::size_t node, bool forward) const { return sum(0, node, forward); }
  double from(std::size_t node, bool forward) const { return sum(node, count_, forward); }

 private:
  double sum(std::size_t first, std::size_t end, bool forward) const {
    double sum = 0;
    for (std::size_t n = first; n < end; ++n) sum += of_node_(part_, n, forward);
    return sum;
  }

  const WorkOfNode& of_node_;
  int part_;
  std::size_t count_;
};

std::size_t first_reader(const Graph& graph, ValueId value) {
  const auto reads = [&](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
  };
  return std::find_if(graph.nodes.begin(), graph.nodes.end(), reads) - graph.nodes.begin();
}

/// The node of the part that made a received value whose gradients, and those of later nodes, are added before the
/// gradient that `reader` sends; the first such node if there are several. 0, i.e. after all nodes, if no gradient is
/// sent.
std::int32_t first_arrival(const GraphPart& maker, int reader, std::size_t entry) {
  std::int32_t before = 0;
  for (std::size_t a = 0; a < maker.arrives_from.size(); ++a) {
    const GraphPart::Source& source = maker.arrives_from[a];
    if (source.part == reader && source.index == entry) before = std::max(before, maker.boundary.arrivals[a].before);
  }
  return before;
}

}  // namespace

std::vector<Crossing> crossings_of(const std::vector<const GraphPart*>& parts, int reader, const WorkOfNode& work) {
  const GraphPart& mine = *parts[reader];
  const Work own(work, reader, mine);
  std::vector<Crossing> crossings;
  for (std::size_t i = 0; i < mine.received_from.size(); ++i) {
    const GraphPart::Source& source = mine.received_from[i];
    const GraphPart& maker = *parts[source.part];
    const Work others(work, source.part, maker);
    const std::size_t made = maker.graph.at(maker.boundary.sent[source.index]).producer;
    const std::size_t reads = first_reader(mine.graph, mine.boundary.received[i].value);
    const std::size_t arrives = first_arrival(maker, reader, i);
    crossings.push_back({.part = source.part,
                         .left = others.from(made + 1, true),
                         .before = own.before(reads, true),
                         .gradient_left = own.before(reads, false),
                         .before_gradient = others.from(arrives, false)});
  }
  return crossings;
}

}  // namespace lockstep
