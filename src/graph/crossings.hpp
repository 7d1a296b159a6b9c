// Crossings: how the work of two parts can overlap where one reads what the other makes. A value is sent when it has
// been made, whatever its part computes after it, and a part computes until it comes to the first node that reads what
// it receives. So a branch is computed while that which it will be joined with is still being made.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "graph/parts.hpp"

namespace lockstep {

/// Of a value that a part receives; work in the unit of the nodes' own.
struct Crossing {
  int part = 0;                ///< that makes it
  double left = 0;             ///< of that part's forward, when it has been made
  double before = 0;           ///< of the reader's forward, before the first node that reads it
  double gradient_left = 0;    ///< of the reader's backward, when all of its gradient has been made
  double before_gradient = 0;  ///< of the other's backward, before any of that is read
};

/// The work of a node of a part, forward or backward.
using WorkOfNode = std::function<double(int part, std::size_t node, bool forward)>;

/// Per PartBoundary::received of part `reader`.
[[nodiscard]] std::vector<Crossing> crossings_of(const std::vector<const GraphPart*>& parts, int reader,
                                                 const WorkOfNode& work);

}  // namespace lockstep
