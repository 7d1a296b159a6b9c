// The owner's work: the sum of many partial sums in tree order, block by block, so that what stands between two
// additions stays in the cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/tree.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::comm {

class Combiner {
 public:
  Combiner() = default;
  Combiner(const Tree& tree, std::span<const TreeNode> partials);
  /// out[i] = the tree's sum of sources[p][i], with sources in the order of the partials.
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
