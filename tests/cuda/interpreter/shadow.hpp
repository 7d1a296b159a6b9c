// What is known of each byte of an allocation: whether anybody wrote it, and who touched it last. From it come the
// reports of memory that nobody wrote, and of races: two touches, one of them a write, that nothing orders.
//
// Ordered are: a lane with itself; lanes of a warp by a barrier of both; works of one stream; works of two streams, and
// of the host, by events and waits (order.hpp). Two atomic accesses are no race.
//
// Touches are kept for cells of 4 bytes, and of fewer where something narrower was accessed. Of reads a cell keeps one
// work, and there a warp's lanes; where works read it that nothing orders, which of them it keeps is drawn.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "cuda/interpreter/order.hpp"
#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

/// What a copy reads may be memory that nobody wrote.
enum class Touch : u8 { read, write, atomic, copy_read };

/// A warp's own time: lanes count the barriers that they met at.
struct LaneTimes {
  std::array<u32, kLanes> now{};
  std::array<std::array<u32, kLanes>, kLanes> seen{};  ///< [lane][other]: the last time of the other that is before
  bool moved = false;                                  ///< there was a barrier

  void reset();
  /// A barrier of these lanes.
  void meet(u32 lanes);
};

/// Who touches.
struct Toucher {
  const Order* order = nullptr;
  const Work* work = nullptr;
  u32 warp = 0;  ///< of the launch, from 1; 0: a copy, or a memset
  u32 lane = 0;
  const LaneTimes* times = nullptr;  ///< null: a copy
  mutable u32 known_before = 0;      ///< a work that was found to be before this one

  [[nodiscard]] u32 now() const { return times == nullptr ? 0 : times->now[lane]; }
  [[nodiscard]] bool is_after_work(u32 other) const;
  /// Of this warp's lane at its time.
  [[nodiscard]] bool is_after_lane(u32 other, u32 time) const {
    return other == lane || (times != nullptr && times->seen[lane][other] >= time);
  }
};

class Shadow {
 public:
  explicit Shadow(std::size_t bytes) : bytes_(bytes) {}

  /// Notes the touch of bytes at `at`, and says what is wrong with it; null: nothing.
  const char* touch(std::size_t at, std::size_t bytes, Touch how, const Toucher& toucher);
  /// Nothing is known of memory that the host may write, too: all of it counts as written.
  void assume_written() { all_written_ = true; }
  [[nodiscard]] bool is_written(std::size_t at, std::size_t bytes) const;
  void set_written(std::size_t at, std::size_t bytes, bool written = true);
  /// A copy of memory that nobody wrote is memory that nobody wrote.
  void copy_written(std::size_t at, const Shadow& from, std::size_t from_at, std::size_t bytes);

 private:
  struct Cell {
    u32 writer = 0, writer_warp = 0, writer_time = 0;  ///< a work; 0: none
    u8 writer_lane = 0;
    bool atomic = false;
    bool several_warps = false;  ///< of the reader
    u32 reader = 0, reader_warp = 0, reader_lanes = 0, reader_time = 0;
  };
  struct Page {
    u8 shift = 2;  ///< a cell's bytes: 1 << shift
    std::unique_ptr<Cell[]> cells;
  };

  Page& page(std::size_t at, std::size_t bytes);
  static void split(Page& page, u8 shift);
  static const char* read(Cell& cell, const Toucher& toucher);
  static const char* write(Cell& cell, const Toucher& toucher, bool atomic);
  static bool is_after_write(const Cell& cell, const Toucher& toucher);
  static bool is_after_reads(const Cell& cell, const Toucher& toucher);

  std::size_t bytes_;
  bool all_written_ = false;
  std::unique_ptr<u8[]> written_;
  std::vector<Page> pages_;
};

}  // namespace lockstep::ptx
