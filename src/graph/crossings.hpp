// Crossings: how the work of two parts can overlap if one reads what the other makes. A value is sent as soon as it has
// been made, whatever its part computes afterwards, and a part computes until the first node that reads what it
// receives. So a branch is computed while the one that it will be joined with is still being computed.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "graph/parts.hpp"

namespace lockstep {

/// For a value that a part receives; work is in the unit of the nodes' own.
struct Crossing {
  int part = 0;                ///< the part that makes it
  double left = 0;             ///< remaining work of that part's forward when the value has been made
  double before = 0;           ///< work of the reader's forward before the first node that reads it
  double gradient_left = 0;    ///< remaining work of the reader's backward when its whole gradient has been made
  double before_gradient = 0;  ///< work of the other's backward before any of that gradient is read
};

/// The work of a node of a part, forward or backward.
using WorkOfNode = std::function<double(int part, std::size_t node, bool forward)>;

/// Per PartBoundary::received of part `reader`.
[[nodiscard]] std::vector<Crossing> crossings_of(const std::vector<const GraphPart*>& parts, int reader,
                                                 const WorkOfNode& work);

}  // namespace lockstep
