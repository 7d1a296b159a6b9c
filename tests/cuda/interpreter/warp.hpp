// A warp: 32 lanes that execute decoded instructions together, and separately after they diverge.
//
// Lanes at the same instruction are a fragment. The fragment whose instruction comes first in the text runs until it
// has exited, waits, or reaches the position of another one, with which it then merges: lanes that diverged at a branch
// meet again behind it, given the way in which nvcc lays out code. Any order of lanes is valid (PTX ISA, "Independent
// thread scheduling"); with some seeds each lane runs alone.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cuda/interpreter/launch.hpp"
#include "cuda/interpreter/program.hpp"
#include "cuda/interpreter/shadow.hpp"
#include "cuda/interpreter/shared_memory.hpp"

namespace lockstep::ptx {

class Warp {
 public:
  /// `shared`: the block's memory.
  Warp(const Launch& launch, SharedMemory& shared);

  /// Begins warp `number` of the block.
  void start(u32 block, u32 number);
  /// Runs it on, to its end or until all its lanes wait at a barrier of the block.
  void run();
  [[nodiscard]] bool has_ended() const { return fragments_.empty(); }
  /// Goes on behind the block's barrier.
  void pass_barrier() { release(living_); }
  /// Ends it where it waits for other warps, which will not come.
  void end_waiting();

  // For instructions:

  template <class Bits>
  Bits* row(Row row) {
    return reinterpret_cast<Bits*>(registers_ + row);
  }
  u32& predicate(Row mask) { return *row<u32>(mask); }
  /// The memory that this lane reads or writes there, checked; null if the access is invalid, which has been reported.
  const u8* readable(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes) {
    return touch(instruction, lane, address, bytes, Touch::read);
  }
  u8* writable(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes) {
    return touch(instruction, lane, address, bytes, Touch::write);
  }
  u8* atomically(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes) {
    return touch(instruction, lane, address, bytes, Touch::atomic);
  }
  const u8* shared_readable(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes) {
    return touch_shared(instruction, lane, address, bytes, false);
  }
  u8* shared_writable(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes) {
    return touch_shared(instruction, lane, address, bytes, true);
  }
  /// A kernel's parameters; null if invalid, which has been reported.
  const u8* parameter(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes);
  void report(const Instruction& instruction, u32 lane, const std::string& what, const std::string& detail) const;

 private:
  struct Fragment {
    u32 at = 0;  ///< of the instruction
    u32 lanes = 0;
    bool waits = false;
  };

  /// The index of the fragment that runs next; -1: none can.
  [[nodiscard]] int next();
  void join_equals(std::size_t to);
  [[nodiscard]] u32 limit(std::size_t running) const;
  void go_on(std::size_t fragment);
  void leave_straight_line(std::size_t fragment, const Instruction& instruction, u32 active);

  // Where lanes wait for one another (warp_barriers.cpp).
  void meet();
  bool all_meet(const Instruction& instruction, u32 lanes);
  [[nodiscard]] u32 mask_of(const Instruction& instruction, u32 lane);
  [[nodiscard]] u32 waiting_with(const Instruction& like, u32 mask);
  [[nodiscard]] const Instruction& waits_at(u32 lane) const;
  template <class At>
  void shuffle(u32 lanes, u32 mask, const At& at);
  void release(u32 lanes);
  void leave(u32 lanes);
  void deadlock();
  [[nodiscard]] bool waits_for_block() const;

  u8* touch(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes, Touch how) {
    Allocation* const found = launch_.memory.find(address, bytes);
    if (found == nullptr || found->space != Space::gpu || (address & (bytes - 1)) != 0 || launch_.costs != nullptr)
      return touch_unchecked(instruction, lane, address, bytes, how);
    toucher_.lane = lane;
    const char* const wrong = found->shadow.touch(address - found->address, bytes, how, toucher_);
    if (wrong != nullptr) report(instruction, lane, wrong, launch_.memory.describe(address, bytes));
    return found->data(address);
  }
  u8* touch_shared(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes, bool writes) {
    if (!shared_.holds(address, bytes) || (address & (bytes - 1)) != 0 || launch_.costs != nullptr)
      return touch_shared_unchecked(instruction, lane, address, bytes, writes);
    toucher_.lane = lane;
    const char* const wrong = shared_.touch(address, bytes, writes, toucher_);
    if (wrong != nullptr) report(instruction, lane, wrong, shared_place(address, bytes));
    return shared_.data(address);
  }
  /// Of what must not be accessed, or where costs are counted.
  u8* touch_unchecked(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes, Touch how);
  u8* touch_shared_unchecked(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes, bool writes);
  [[nodiscard]] std::string shared_place(u64 address, std::size_t bytes) const;

  const Launch& launch_;
  SharedMemory& shared_;
  const Kernel& kernel_;
  bool apart_;
  std::unique_ptr<u8[]> storage_;
  u8* registers_ = nullptr;
  std::vector<Fragment> fragments_;
  u32 living_ = 0;  ///< lanes that have not exited
  u32 block_ = 0, first_thread_ = 0;
  Toucher toucher_;
  LaneTimes times_;
};

}  // namespace lockstep::ptx
