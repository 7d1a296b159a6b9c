#include "cuda/interpreter/launch.hpp"

#include <numeric>

#include "cuda/interpreter/warp.hpp"

namespace lockstep::ptx {

namespace {

std::vector<u32> drawn_order(Draw& draw, u32 count) {
  std::vector<u32> order(count);
  std::iota(order.begin(), order.end(), 0U);
  draw.shuffle(order);
  return order;
}

}  // namespace

void execute(const Launch& launch) {
  ++launch.counts.launches;
  launch.counts.hits.resize(launch.kernel.code.size());
  Warp warp(launch);
  if (launch.costs != nullptr) {
    if (launch.costs->repeats(launch.kernel, launch.blocks, launch.threads, launch.parameters, launch.memory)) return;
    for (const u32 block : launch.costs->begin(launch.kernel, launch.blocks, launch.threads)) {
      for (u32 number = 0; number < (launch.threads + kLanes - 1) / kLanes; ++number) warp.run(block, number);
    }
    launch.costs->end();
    return;
  }
  for (const u32 block : drawn_order(launch.draw, launch.blocks)) {
    for (const u32 number : drawn_order(launch.draw, (launch.threads + kLanes - 1) / kLanes)) warp.run(block, number);
  }
}

}  // namespace lockstep::ptx
