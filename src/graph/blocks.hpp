// The blocks of a graph (Node::block): pieces of a model that are recomputed, or placed on a device, as a whole.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/graph.hpp"

namespace lockstep {

/// Nodes first ... end - 1, all with the same block name.
struct Block {
  std::int32_t first = 0, end = 0;
};

class Blocks {
 public:
  Blocks() = default;
  /// `sent`: values that other parts read, too.
  explicit Blocks(const Graph& graph, const std::vector<ValueId>& sent = {});
  const std::vector<Block>& all() const { return blocks_; }
  /// The block of a node; null: none.
  const Block* of(std::int32_t node) const;
  /// Whether a node outside the value's block reads it, or it is the graph's output.
  bool is_read_outside(ValueId id) const { return read_outside_[id]; }

 private:
  std::vector<Block> blocks_;
  std::vector<std::int32_t> block_of_;  ///< by node; -1: none
  std::vector<bool> read_outside_;      ///< by value
};

}  // namespace lockstep
