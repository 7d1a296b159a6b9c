// The tags of what parts of a model send each other.
#include "exec/part_links.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "exec/cpu_device.hpp"
#include "exec/part_nets.hpp"
#include "graph/parts.hpp"

namespace lockstep::exec {

// The values that a residual addition reads cross the same cut. An evaluation has more micro-batches than a step.
TEST(PartLinks, EveryMicroBatchOfEveryLinkBetweenTwoPartsHasATagOfItsOwn) {
  const Net net(residual);
  const Graph graph = CpuDevice().lower(net.graph, true);
  constexpr int kOfAStep = 4, kOfAnEvaluation = 30;
  std::size_t most = 0;
  for (std::size_t first = 1; first < graph.nodes.size(); ++first) {
    std::vector<int> part_of_node(graph.nodes.size(), 1);
    std::fill_n(part_of_node.begin(), first, 0);
    const PartLinks links = links_of(split(graph, part_of_node), 1, kOfAStep);
    std::set<int> tags;
    for (const auto& link : links.received) {
      for (int micro_batch = 0; micro_batch < kOfAnEvaluation; ++micro_batch) tags.insert(links.tag(link, micro_batch));
    }
    EXPECT_EQ(tags.size(), links.received.size() * kOfAnEvaluation) << "cut before " << graph.nodes[first].name;
    most = std::max(most, links.received.size());
  }
  EXPECT_GE(most, 2U);
}

}  // namespace lockstep::exec
