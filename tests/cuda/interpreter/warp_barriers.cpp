// Where lanes of a warp wait for one another: bar.warp.sync and shfl.sync (PTX ISA, "Parallel Synchronization and
// Communication Instructions", "Data Movement: shfl.sync"). Both name the lanes to wait for by a mask; the lanes may be
// at different instructions of the same kind with the same mask. bar.sync is for all threads of the block, and all of a
// warp must be at the same one ("bar": it is barrier.sync.aligned).
//
// Stricter than the manual: no lane of the mask, nor of the block, may have exited the kernel.
#include <algorithm>

#include "cuda/interpreter/warp.hpp"

namespace lockstep::ptx {

namespace {

u32 first_of(u32 lanes) {
  return static_cast<u32>(std::countr_zero(lanes));
}

}  // namespace

const Instruction& Warp::waits_at(u32 lane) const {
  std::size_t i = 0;
  while (!fragments_[i].waits || (fragments_[i].lanes >> lane & 1U) == 0) ++i;
  return kernel_.code[fragments_[i].at];
}

u32 Warp::mask_of(const Instruction& instruction, u32 lane) {
  return row<u32>(instruction.from[instruction.flow == Flow::barrier ? 0 : 3])[lane];
}

/// The lanes that wait at an instruction of this kind with this mask.
u32 Warp::waiting_with(const Instruction& like, u32 mask) {
  u32 found = 0;
  for (const Fragment& one : fragments_) {
    const Instruction& other = kernel_.code[one.at];
    if (!one.waits || other.flow != like.flow || other.butterfly != like.butterfly) continue;
    for (u32 lanes = one.lanes; lanes != 0; lanes &= lanes - 1) {
      const u32 lane = first_of(lanes);
      if (mask_of(other, lane) == mask) found |= 1U << lane;
    }
  }
  return found;
}

/// Every lane gets the source value of another lane, or its own. A shuffle does not order memory. at(lane): where it
/// stands.
template <class At>
void Warp::shuffle(u32 lanes, u32 mask, const At& at) {
  std::array<u32, kLanes> values{};
  for (u32 left = lanes; left != 0; left &= left - 1) {
    const u32 lane = first_of(left);
    values[lane] = row<u32>(at(lane).from[0])[lane];
  }
  for (u32 left = lanes; left != 0; left &= left - 1) {
    const u32 lane = first_of(left);
    const Instruction& of_lane = at(lane);
    const u32 b = row<u32>(of_lane.from[1])[lane] & 31U, c = row<u32>(of_lane.from[2])[lane];
    const u32 segment = c >> 8 & 31U, clamp = c & 31U;
    const u32 first = lane & segment, last = first | (clamp & ~segment);
    u32 source = of_lane.butterfly ? lane ^ b : first | (b & ~segment);
    const bool there = source <= last;
    if (!there) source = lane;
    if ((mask >> source & 1U) == 0) report(of_lane, lane, "shuffles from a lane outside of the mask", "");
    row<u32>(of_lane.to)[lane] = values[source];
    if (of_lane.found == kNoRow) continue;
    u32& found = predicate(of_lane.found);
    found = (found & ~(1U << lane)) | (u32{there} << lane);
  }
}

/// Where these lanes are at a shuffle or a barrier together with all for whom they wait, none has to. False: some have.
bool Warp::all_meet(const Instruction& instruction, u32 lanes) {
  if (instruction.flow != Flow::barrier && instruction.flow != Flow::shuffle) return false;
  for (u32 left = lanes; left != 0;) {
    const u32 group = mask_of(instruction, first_of(left));
    if ((group & ~left) != 0 || (group >> first_of(left) & 1U) == 0) return false;
    for (u32 others = group; others != 0; others &= others - 1) {
      if (mask_of(instruction, first_of(others)) != group) return false;
    }
    left &= ~group;
  }
  for (u32 left = lanes; left != 0;) {
    const u32 group = mask_of(instruction, first_of(left));
    left &= ~group;
    if (instruction.flow == Flow::barrier) {
      times_.meet(group);
    } else {
      shuffle(group, group, [&](u32 /*lane*/) -> const Instruction& { return instruction; });
    }
  }
  return true;
}

/// Releases all groups of lanes that are complete.
void Warp::meet() {
  u32 waiting = 0;
  for (const Fragment& one : fragments_) waiting |= one.waits ? one.lanes : 0;
  while (waiting != 0) {
    const u32 lane = first_of(waiting);
    const Instruction& at = waits_at(lane);
    if (at.flow == Flow::block_barrier) {
      waiting &= ~(1U << lane);
      continue;
    }
    const u32 mask = mask_of(at, lane), met = waiting_with(at, mask);
    waiting &= ~met & ~(1U << lane);
    if ((mask >> lane & 1U) == 0) {
      report(at, lane, "waits with a mask that it is not in", "");
      release(1U << lane);
      continue;
    }
    if ((mask & ~living_) != 0) report(at, lane, "waits for a lane that has left", "");
    const u32 expected = mask & living_;
    if ((expected & ~met) != 0) continue;
    if (at.flow == Flow::barrier) {
      times_.meet(expected);
    } else {
      shuffle(expected, mask, [&](u32 of_lane) -> const Instruction& { return waits_at(of_lane); });
    }
    release(expected);
  }
}

/// These lanes continue behind the instruction at which they wait.
void Warp::release(u32 lanes) {
  for (std::size_t i = 0, count = fragments_.size(); i < count; ++i) {
    const u32 released = fragments_[i].waits ? fragments_[i].lanes & lanes : 0;
    if (released == 0) continue;
    fragments_[i].lanes &= ~released;
    if (!apart_) {
      fragments_.push_back({fragments_[i].at + 1, released, false});
      continue;
    }
    for (u32 left = released; left != 0; left &= left - 1) {
      fragments_.push_back({fragments_[i].at + 1, 1U << first_of(left), false});
    }
  }
  std::erase_if(fragments_, [](const Fragment& one) { return one.lanes == 0; });
}

void Warp::leave(u32 lanes) {
  living_ &= ~lanes;
  meet();  // other lanes may have waited for them
}

/// Whether all lanes of the warp wait at one barrier of the block.
bool Warp::waits_for_block() const {
  const u32 at = fragments_.front().at;
  u32 waiting = 0;
  for (const Fragment& one : fragments_) waiting |= one.at == at ? one.lanes : 0;
  const u32 lanes = std::min(kLanes, launch_.threads - first_thread_);
  return kernel_.code[at].flow == Flow::block_barrier && waiting == (lanes == kLanes ? kAllLanes : (1U << lanes) - 1);
}

void Warp::end_waiting() {
  if (!has_ended()) deadlock();
}

/// No lane can continue: the waiting ones are released, so that the launch ends.
void Warp::deadlock() {
  u32 waiting = 0;
  for (const Fragment& one : fragments_) waiting |= one.lanes;
  const u32 lane = first_of(waiting);
  report(waits_at(lane), lane, "waits for lanes that never come", "");
  fragments_.clear();
}

}  // namespace lockstep::ptx
