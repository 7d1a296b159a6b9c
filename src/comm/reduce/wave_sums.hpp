// WaveSums: how the sums of a host's subtrees are made of gradients that come in waves, in the tree's association. It
// is a value, the same for all slices: what is added to what in each wave, and which results are kept until the next.
//
// A gradient is read where it has arrived, and so is a sum that is made and added to another one in the same wave. What
// is left at the end of a wave is kept in memory of its own: with neighbours of the tree in one wave, about log2(V)
// sums.
#pragma once

#include <span>
#include <vector>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "comm/reduce/tree.hpp"

namespace lockstep::comm {

struct WaveSums {
  /// A gradient that comes in a wave.
  struct Leaf {
    int rank = 0;
    int place = 0;  ///< among those of its rank in the wave, in the order of the rank's list
    int micro_batch = 0;
  };
  struct Operand {
    bool kept = false;  ///< else it is where a leaf of the wave has arrived
    int number = 0;     ///< of the kept sum, or of the leaf in Wave::leaves
  };
  /// out = left + right, where `out` may be an operand; without `right`, a copy.
  struct Step {
    Operand out, left, right;
    bool adds = true;
  };
  struct Wave {
    std::vector<Leaf> leaves;  ///< of the host, by rank and place
    std::vector<Step> steps;
  };
  std::vector<Wave> waves;
  int kept = 0;  ///< sums that have memory of their own; in the end, the first of them are those of the subtrees
};

/// The leaves of some ranks, wave by wave; as many waves as all ranks make. The assignment must have waves.
[[nodiscard]] std::vector<std::vector<WaveSums::Leaf>> leaves_of_waves(const MicroBatchAssignment& assignment,
                                                                       std::span<const int> ranks);

/// `subtrees`: those that these leaves are all of.
[[nodiscard]] WaveSums plan_waves(const Tree& tree, const std::vector<TreeNode>& subtrees,
                                  std::vector<std::vector<WaveSums::Leaf>> leaves);

}  // namespace lockstep::comm
