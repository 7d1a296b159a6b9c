// A kernel launch: its grid of blocks, each with some warps. Nothing orders two blocks, and two warps of a block only
// its barriers, and these only what they do in shared memory.
#pragma once

#include <vector>

#include "cuda/interpreter/costs.hpp"
#include "cuda/interpreter/draw.hpp"
#include "cuda/interpreter/memory.hpp"
#include "cuda/interpreter/order.hpp"
#include "cuda/interpreter/problems.hpp"
#include "cuda/interpreter/program.hpp"

namespace lockstep::ptx {

/// How much of a kernel was executed.
struct Counts {
  u64 launches = 0, instructions = 0;  ///< `instructions`: summed over lanes
  std::vector<u64> hits;               ///< for each instruction: how often a warp executed it, in any lane
};

struct Launch {
  const Kernel& kernel;
  u32 blocks = 0, threads = 0;
  std::size_t shared_bytes = 0;  ///< of a block
  std::vector<u8> parameters;
  Counts& counts;
  Memory& memory;
  Problems& problems;
  Draw& draw;
  const Order& order;
  const Work& work;
  Costs* costs = nullptr;  ///< null: nothing is counted
};

/// Runs the whole grid, or the blocks that costs are counted of.
void execute(const Launch& launch);

}  // namespace lockstep::ptx
