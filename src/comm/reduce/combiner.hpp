// The sum of many partial sums in tree order, block by block, so that what stands between two additions stays in the
// cache: the work of a slice's owner, and of its leaders on other hosts (comm/reduce/host_sums.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/reduce/tree.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::comm {

class Combiner {
 public:
  Combiner() = default;
  /// Of the partial sums that make `node`'s.
  Combiner(const Tree& tree, TreeNode node, std::span<const TreeNode> partials);
  /// out[i] = the node's sum of sources[p][i], with sources in the order of the partials.
  void run(float* out, std::span<const float* const> sources, std::int64_t n);

 private:
  // An operand or result: a partial sum, a scratch block, or the output.
  struct Operand {
    enum class Kind { partial, scratch, output } kind = Kind::partial;
    int index = 0;
  };
  struct Step {
    Operand out, left, right;
  };
  std::vector<Step> steps_;
  AlignedBytes scratch_;
};

}  // namespace lockstep::comm
