// What is known about each byte of an allocation: whether it was written, and which accesses were last. From it come
// the reports of unwritten memory that is read, and of races: two accesses, one of them a write, that nothing orders.
//
// Ordered are: accesses of one lane; lanes of a warp by a barrier of both; works of one stream; works of two streams,
// and of the host, by events and waits (order.hpp). Two atomic accesses are not a race.
//
// Accesses are stored for cells of 4 bytes, or smaller ones where something narrower was accessed. A cell stores one
// reading work, and for that a warp's lanes; if unordered works read it, the one that is stored is drawn.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda/interpreter/order.hpp"
#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

/// copy_read: a copy may read unwritten memory.
enum class Touch : u8 { read, write, atomic, copy_read };

/// A warp's own time: each lane counts its barriers.
struct LaneTimes {
  std::array<u32, kLanes> now{};
  std::array<std::array<u32, kLanes>, kLanes> seen{};  ///< [lane][other]: the last time of the other that precedes this
                                                       ///< lane
  bool moved = false;                                  ///< there was a barrier

  void reset();
  /// A barrier of these lanes.
  void meet(u32 lanes);
};

/// Who makes the access.
struct Toucher {
  const Order* order = nullptr;
  const Work* work = nullptr;
  u32 warp = 0;  ///< of the launch, from 1; 0: a copy, or a memset
  u32 lane = 0;
  const LaneTimes* times = nullptr;           ///< null: a copy
  mutable std::array<u32, 4> known_before{};  ///< cache: works that were found to precede this one

  [[nodiscard]] bool knows(u32 other) const { return known_before[other % known_before.size()] == other; }
  [[nodiscard]] u32 now() const { return times == nullptr ? 0 : times->now[lane]; }
  [[nodiscard]] bool is_after_work(u32 other) const;
  /// Whether this lane is after that time of another lane of its warp.
  [[nodiscard]] bool is_after_lane(u32 other, u32 time) const {
    return other == lane || (times != nullptr && times->seen[lane][other] >= time);
  }
};

class Shadow {
 public:
  explicit Shadow(std::size_t bytes) : bytes_(bytes) {}

  /// Records an access to the bytes at `at`, and returns what is wrong with it; null: nothing.
  const char* touch(std::size_t at, std::size_t bytes, Touch how, const Toucher& toucher) {
    if (how == Touch::read && reads_one(at, bytes, toucher)) return nullptr;
    return touch_all(at, bytes, how, toucher);
  }
  /// For memory that the host may write, too: all of it counts as written.
  void assume_written() { all_written_ = true; }
  /// Whether a clock knows of all accesses that they are done.
  [[nodiscard]] bool is_known(const Order& order, const Clock& clock) const;
  /// Every access is right.
  void leave_unchecked() { unchecked_ = all_written_ = true; }
  [[nodiscard]] bool is_written(std::size_t at, std::size_t bytes) const;
  void set_written(std::size_t at, std::size_t bytes, bool written = true);
  /// A copy of unwritten memory is unwritten.
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

  bool reads_one(std::size_t at, std::size_t bytes, const Toucher& toucher);
  const char* touch_all(std::size_t at, std::size_t bytes, Touch how, const Toucher& toucher);
  Page& page(std::size_t at, std::size_t bytes);
  static void split(Page& page, u8 shift);
  static const char* read(Cell& cell, const Toucher& toucher);
  static const char* write(Cell& cell, const Toucher& toucher, bool atomic);
  static bool is_after_write(const Cell& cell, const Toucher& toucher);
  static bool is_after_reads(const Cell& cell, const Toucher& toucher);

  static constexpr std::size_t kPageBytes = 256;
  static constexpr u32 kSeveral = 0xffffffffU;  ///< instead of a warp: no lane is after all of them
  static constexpr const char* kUnwritten = "reads memory that nobody wrote";
  static constexpr const char* kReadRace = "races: reads what another thread of the launch writes";
  static constexpr const char* kWriteRace = "races: writes what another thread of the launch writes";
  static constexpr const char* kOverwriteRace = "races: writes what another thread of the launch reads";
  static constexpr const char* kReadUnordered = "misses a wait: reads what work that may run beside it writes";
  static constexpr const char* kWriteUnordered = "misses a wait: writes what work that may run beside it writes";
  static constexpr const char* kOverwriteUnordered = "misses a wait: writes what work that may run beside it reads";

  std::size_t bytes_;
  bool all_written_ = false, unchecked_ = false;
  std::unique_ptr<u8[]> written_;
  std::vector<Page> pages_;
};

// Most accesses of lanes go through these: no call is left of them.

inline bool Toucher::is_after_work(u32 other) const {
  if (knows(other)) return true;
  if (!order->is_before(other, work->before)) return false;
  known_before[other % known_before.size()] = other;
  return true;
}

inline bool Shadow::is_written(std::size_t at, std::size_t bytes) const {
  constexpr std::array<u8, 16> kOnes{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  if (all_written_) return true;
  if (written_ == nullptr) return false;
  const u8* const from = written_.get() + at;
  switch (bytes) {  // those of lanes: no calls
    case 2:
      return std::memcmp(from, kOnes.data(), 2) == 0;
    case 4:
      return std::memcmp(from, kOnes.data(), 4) == 0;
    case 8:
      return std::memcmp(from, kOnes.data(), 8) == 0;
    case 16:
      return std::memcmp(from, kOnes.data(), 16) == 0;
    default:
      return std::memchr(from, 0, bytes) == nullptr;
  }
}

/// A read of one cell of which there is nothing to say, as most are. False: nothing is recorded yet.
inline bool Shadow::reads_one(std::size_t at, std::size_t bytes, const Toucher& toucher) {
  if (at / kPageBytes >= pages_.size() || !is_written(at, bytes)) return false;
  const Page& page = pages_[at / kPageBytes];
  if (page.cells == nullptr || bytes != std::size_t{1} << page.shift) return false;
  Cell& cell = page.cells[at % kPageBytes >> page.shift];
  const u32 work = toucher.work->number, mine = 1U << toucher.lane;
  if (cell.writer != 0 && !toucher.knows(cell.writer)) return false;
  if (cell.reader == work) {
    if (cell.several_warps) return true;
    if (cell.reader_warp != toucher.warp || cell.reader_lanes != mine) return false;
  } else if (cell.reader != 0 && !toucher.knows(cell.reader)) {
    return false;
  }
  cell.reader = work;
  cell.reader_warp = toucher.warp;
  cell.reader_lanes = mine;
  cell.reader_time = toucher.now();
  cell.several_warps = false;
  return true;
}

}  // namespace lockstep::ptx
