#include "cuda/interpreter/launch.hpp"

#include <algorithm>
#include <memory>
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

/// A block's warps, of which each goes on until all of them wait at its barrier.
class RunningBlock {
 public:
  explicit RunningBlock(const Launch& launch)
      : launch_(launch), shared_(launch.shared_bytes), number_of_warps_((launch.threads + kLanes - 1) / kLanes) {
    const u32 at_once = launch.kernel.has_block_barriers ? number_of_warps_ : 1;
    for (u32 i = 0; i < at_once; ++i) warps_.push_back(std::make_unique<Warp>(launch, shared_));
  }

  void run(u32 block) {
    shared_.begin_block();
    if (launch_.costs != nullptr) launch_.costs->begin_block(block, number_of_warps_);
    if (!launch_.kernel.has_block_barriers) {
      for (const u32 number : drawn_order(launch_.draw, number_of_warps_)) {
        warps_[0]->start(block, number);
        go_on(*warps_[0], number);
      }
      return;
    }
    for (u32 number = 0; number < number_of_warps_; ++number) warps_[number]->start(block, number);
    while (!have_ended()) {
      for (const u32 number : drawn_order(launch_.draw, number_of_warps_)) go_on(*warps_[number], number);
      pass_barrier();
    }
  }

 private:
  void go_on(Warp& warp, u32 number) const {
    if (launch_.costs != nullptr) launch_.costs->go_on(number);
    warp.run();
  }
  [[nodiscard]] bool have_ended() const {
    return std::ranges::all_of(warps_, [](const auto& warp) { return warp->has_ended(); });
  }
  void pass_barrier() {
    shared_.barrier();
    const bool one_ended = std::ranges::any_of(warps_, [](const auto& warp) { return warp->has_ended(); });
    for (const auto& warp : warps_) one_ended ? warp->end_waiting() : warp->pass_barrier();
  }

  const Launch& launch_;
  SharedMemory shared_;
  u32 number_of_warps_;
  std::vector<std::unique_ptr<Warp>> warps_;
};

}  // namespace

void execute(const Launch& launch) {
  ++launch.counts.launches;
  launch.counts.hits.resize(launch.kernel.code.size());
  RunningBlock of_launch(launch);
  if (launch.costs != nullptr) {
    if (launch.costs->repeats(launch.kernel, launch.blocks, launch.threads, launch.parameters, launch.memory)) return;
    for (const u32 block : launch.costs->begin(launch.kernel, launch.blocks, launch.threads, launch.shared_bytes)) {
      of_launch.run(block);
    }
    launch.costs->end();
    return;
  }
  for (const u32 block : drawn_order(launch.draw, launch.blocks)) of_launch.run(block);
}

}  // namespace lockstep::ptx
