// The sum of many partial sums in tree order, block by block, so that what stands between two additions stays in the
// cache: the work of a slice's owner, and of its leaders on other hosts (comm/reduce/reduce_plan.hpp).
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
  /// `additions`: combine_order() of this many sources.
  Combiner(std::span<const Addition> additions, std::size_t sources);
  /// out[i] = the sum of sources[s][i], with the sources in the order of combine_order()'s partial sums.
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
