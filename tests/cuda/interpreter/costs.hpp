// What launches would cost a GPU, by what some of their blocks do. Where INTERPRETED_GPU_BLOCKS says how many, only so
// many blocks of a grid run, in pairs of neighbours spread over it; what is counted of them stands for all. Memory is
// then sparse, begins as zeros, and its accesses are not checked: others have not written what a block reads.
//
//   INTERPRETED_GPU_BLOCKS  blocks of a grid that run
//   INTERPRETED_GPU_WHOLE   parts of names of kernels whose grids run whole, because loops of others follow what they
//                           wrote; with commas
//
// A request is one execution of a load or store by a warp. Memory moves in sectors of 32 bytes. What a warp has read or
// written in its last kCachedSectors sectors it finds in the L1 cache: that is its share, at full occupancy. What
// it moves again later comes from memory, or from the L2 cache, if what all warps move in between fits into that.
//
// Shared memory gives a word of each of its 32 banks at a time, a word that several lanes want to all of them: to a
// warp at once, or, by accesses of 8 and 16 bytes, to a half and a quarter of it. Lanes that want different words of
// one bank are a conflict.
//
// A segment is what a warp executes between two branches, stores or barriers. Its loads are issued together, as ptxas
// may order them, except that one whose address was loaded follows that one: it waits so often as that chain is long.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda/interpreter/memory.hpp"
#include "cuda/interpreter/program.hpp"

namespace lockstep::ptx {

inline constexpr u64 kSectorBytes = 32;
inline constexpr u64 kAligned = 128;
inline constexpr std::size_t kCachedSectors = 128;  // 4 KiB of the 256 that 64 warps share

/// Of a launch. Amounts are those of its whole grid, estimated.
struct LaunchCost {
  std::string kernel;
  u32 blocks = 0, threads = 0, ran = 0;  ///< `ran`: blocks that were executed
  std::size_t shared_bytes = 0;          ///< of a block
  f64 instructions = 0;                  ///< of warps
  f64 requests = 0;                      ///< loads and stores of warps
  f64 sectors = 0, needed = 0;           ///< of all requests; and how many the bytes of each would need at least
  f64 moved = 0;                         ///< bytes between the multiprocessors and the L2 cache
  f64 again = 0;                         ///< of these, what the warp had moved before
  u64 distance = 0;                      ///< bytes that a warp moved in between, at most
  f64 least = 0;                         ///< bytes: what is read and what is written, each once
  u64 chain = 0;                         ///< instructions of the warp that has most of them
  u64 waits = 0;                         ///< how often a warp waits for memory, one after the other
  f64 banked = 0, ways = 0;  ///< accesses of shared memory: how often its banks give words, at least and in fact
};

/// A kernel of a library: `work` in floating-point operations.
struct LibraryCost {
  std::string name;
  f64 work = 0, bytes = 0;
};

class Costs {
 public:
  /// As the environment says; null: whole grids run, and nothing is counted.
  static std::unique_ptr<Costs> asked_for();
  Costs(u32 blocks, std::vector<std::string> whole) : blocks_(blocks), whole_(std::move(whole)) {}

  /// Whether this launch was counted before, which is then said again and need not run: equal kernels with equal
  /// parameters, but for addresses, of which only `kAligned` counts.
  bool repeats(const Kernel& kernel, u32 blocks, u32 threads, std::vector<u8> parameters, Memory& memory);
  /// Begins a launch; the blocks that shall run.
  std::vector<u32> begin(const Kernel& kernel, u32 blocks, u32 threads, std::size_t shared_bytes);
  void begin_block(u32 block, u32 warps);
  /// This warp of the block goes on.
  void go_on(u32 warp);
  void begin_instruction(const Instruction& instruction);
  void access(u64 address, std::size_t bytes, bool writes);  ///< by a lane
  void access_shared(u64 address, std::size_t bytes);        ///< the same, in shared memory
  void end_instruction();
  void end();
  void add(const LibraryCost& cost);

  [[nodiscard]] const LaunchCost& last() const { return now_; }
  /// Lines of a report: launches and libraries' kernels, in order.
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  struct Sector {
    u32 block = 0, read = 0, written = 0;  ///< masks of bytes
    bool shared = false;                   ///< several blocks have it
    u32 moves = 0, again = 0;
    u64 warp = 0, at = 0;  ///< the last one that had it, and what that had moved by then
  };
  struct Access {
    u64 address;
    std::size_t bytes;
  };
  /// A warp of the block.
  struct WarpState {
    std::vector<u64> recent;     ///< sectors that it has in its cache, the last one at the end
    std::vector<u32> depths;     ///< by register: waits for memory before it is there, in the segment
    std::vector<Row> deep;       ///< those that wait at all
    u32 depth = 0, deepest = 0;  ///< of the instruction's sources; of the segment
    u64 chain = 0, waits = 0;
    u64 number = 0, moved = 0;  ///< from 1, and the sectors that it has moved
  };
  void end_block();
  void end_shared();
  void touch(u64 sector, u32 mask);
  void end_segment();
  void arrives(Row row, u32 depth);

  u32 blocks_;
  std::vector<std::string> whole_, lines_;
  std::map<std::string, std::string> counted_;  ///< lines, by launch
  std::string launch_;                          ///< the one that is counted
  LaunchCost now_;
  std::unordered_map<u64, Sector> sectors_;
  std::vector<Access> accesses_, shared_;  ///< of the instruction
  std::vector<WarpState> warps_;           ///< of the block
  WarpState* warp_ = nullptr;              ///< the one that runs
  const Instruction* of_ = nullptr;
  bool writes_ = false;
  u32 block_ = 0;
  std::size_t registers_ = 0;  ///< bytes of the kernel's
  u64 warps_begun_ = 0;
  u64 distance_ = 0;  ///< sectors
};

}  // namespace lockstep::ptx
