// A kernel's launch: its grid of blocks, each of some warps. Nothing orders two blocks, nor two warps of a block: no
// kernel of ours has a barrier for a block.
#pragma once

#include <vector>

#include "cuda/interpreter/draw.hpp"
#include "cuda/interpreter/memory.hpp"
#include "cuda/interpreter/order.hpp"
#include "cuda/interpreter/problems.hpp"
#include "cuda/interpreter/program.hpp"

namespace lockstep::ptx {

/// What was executed of a kernel.
struct Counts {
  u64 launches = 0, instructions = 0;  ///< instructions of lanes
  std::vector<u64> hits;               ///< of each instruction: how often a warp executed it, in any lane
};

struct Launch {
  const Kernel& kernel;
  u32 blocks = 0, threads = 0;
  std::vector<u8> parameters;
  Counts& counts;
  Memory& memory;
  Problems& problems;
  Draw& draw;
  const Order& order;
  const Work& work;
};

/// Runs all of it.
void execute(const Launch& launch);

}  // namespace lockstep::ptx
