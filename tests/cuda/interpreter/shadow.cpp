#include "cuda/interpreter/shadow.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace lockstep::ptx {

void LaneTimes::reset() {
  now.fill(1);
  for (auto& lane : seen) lane.fill(0);
  moved = false;
}

void LaneTimes::meet(u32 lanes) {
  std::array<u32, kLanes> all{};
  u32 latest = 0;
  for (u32 lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1U) == 0) continue;
    for (u32 other = 0; lanes != kAllLanes && other < kLanes; ++other)
      all[other] = std::max(all[other], seen[lane][other]);
    latest = std::max(latest, now[lane]);
  }
  for (u32 lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1U) != 0) all[lane] = now[lane];
  }
  for (u32 lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1U) == 0) continue;
    seen[lane] = all;
    now[lane] = latest + 1;
  }
  moved = true;
}

void Shadow::split(Page& page, u8 shift) {
  auto finer = std::make_unique<Cell[]>(kPageBytes >> shift);
  for (std::size_t i = 0; page.cells != nullptr && i < kPageBytes >> shift; ++i) {
    finer[i] = page.cells[i >> (page.shift - shift)];
  }
  page.cells = std::move(finer);
  page.shift = shift;
}

bool Shadow::is_after_write(const Cell& cell, const Toucher& toucher) {
  if (cell.writer == 0) return true;
  if (cell.writer != toucher.work->number) return toucher.is_after_work(cell.writer);
  return cell.writer_warp == toucher.warp && toucher.is_after_lane(cell.writer_lane, cell.writer_time);
}

bool Shadow::is_after_reads(const Cell& cell, const Toucher& toucher) {
  if (cell.reader == 0) return true;
  if (cell.reader != toucher.work->number) return toucher.is_after_work(cell.reader);
  if (cell.several_warps || cell.reader_warp != toucher.warp) return false;
  for (u32 lanes = cell.reader_lanes; lanes != 0; lanes &= lanes - 1) {
    if (!toucher.is_after_lane(static_cast<u32>(std::countr_zero(lanes)), cell.reader_time)) return false;
  }
  return true;
}

const char* Shadow::read(Cell& cell, const Toucher& toucher) {
  const u32 work = toucher.work->number, mine = 1U << toucher.lane;
  const char* wrong = nullptr;
  if (!is_after_write(cell, toucher)) wrong = cell.writer == work ? kReadRace : kReadUnordered;
  if (cell.reader == work) {
    if (cell.several_warps) return wrong;
    if (cell.reader_warp != toucher.warp) {
      cell.several_warps = true;
      return wrong;
    }
    if (cell.reader_lanes != mine && !is_after_reads(cell, toucher)) {
      cell.reader_lanes |= mine;
      cell.reader_time = std::max(cell.reader_time, toucher.now());
      return wrong;
    }
  } else if (!is_after_reads(cell, toucher) && std::bit_cast<std::uintptr_t>(&cell) / sizeof(Cell) % 2 != 0) {
    return wrong;  // of two works that nothing orders, every other cell keeps the first
  }
  cell.reader = work;
  cell.reader_warp = toucher.warp;
  cell.reader_lanes = mine;
  cell.reader_time = toucher.now();
  cell.several_warps = false;
  return wrong;
}

const char* Shadow::write(Cell& cell, const Toucher& toucher, bool atomic) {
  const u32 work = toucher.work->number;
  const char* wrong = nullptr;
  const bool after = is_after_write(cell, toucher);
  if (!after && !(atomic && cell.atomic)) wrong = cell.writer == work ? kWriteRace : kWriteUnordered;
  if (!is_after_reads(cell, toucher)) wrong = cell.reader == work ? kOverwriteRace : kOverwriteUnordered;
  cell.writer_warp = after || cell.writer != work ? toucher.warp : kSeveral;
  cell.writer = work;
  cell.writer_lane = static_cast<u8>(toucher.lane);
  cell.writer_time = toucher.now();
  cell.atomic = atomic;
  cell.reader = 0;  // these precede this write; later accesses come after it, and so after them
  return wrong;
}

Shadow::Page& Shadow::page(std::size_t at, std::size_t bytes) {
  if (pages_.empty()) pages_.resize((bytes_ + kPageBytes - 1) / kPageBytes);
  Page& page = pages_[at / kPageBytes];
  const std::size_t ends = at | bytes;
  const u8 wanted = ends % 4 == 0 ? 2 : ends % 2 == 0 ? 1 : 0;
  if (page.cells == nullptr || wanted < page.shift) split(page, std::min(wanted, page.shift));
  return page;
}

void Shadow::set_written(std::size_t at, std::size_t bytes, bool written) {
  if (all_written_) return;
  if (written_ == nullptr) written_ = std::make_unique<u8[]>(bytes_);
  u8* const to = written_.get() + at;
  const int value = written ? 1 : 0;
  switch (bytes) {
    case 2:
      std::memset(to, value, 2);
      return;
    case 4:
      std::memset(to, value, 4);
      return;
    case 8:
      std::memset(to, value, 8);
      return;
    case 16:
      std::memset(to, value, 16);
      return;
    default:
      std::memset(to, value, bytes);
  }
}

const char* Shadow::touch_all(std::size_t at, std::size_t bytes, Touch how, const Toucher& toucher) {
  if (unchecked_) return nullptr;
  const char* wrong = nullptr;
  const bool writes = how == Touch::write || how == Touch::atomic;
  if ((how == Touch::read || how == Touch::atomic) && !is_written(at, bytes)) wrong = kUnwritten;
  if (writes) set_written(at, bytes);
  for (std::size_t end = at + bytes; at < end;) {
    const std::size_t part = std::min(end - at, kPageBytes - at % kPageBytes);
    const Page& page = this->page(at, part);
    Cell* const cells = page.cells.get() + (at % kPageBytes >> page.shift);
    for (std::size_t i = 0; i < part >> page.shift; ++i) {
      const char* const found = writes ? write(cells[i], toucher, how == Touch::atomic) : read(cells[i], toucher);
      if (found != nullptr) wrong = found;
    }
    at += part;
  }
  return wrong;
}

bool Shadow::is_known(const Order& order, const Clock& clock) const {
  for (const Page& page : pages_) {
    for (std::size_t i = 0; page.cells != nullptr && i < kPageBytes >> page.shift; ++i) {
      const Cell& cell = page.cells[i];
      if (cell.writer != 0 && !order.is_before(cell.writer, clock)) return false;
      if (cell.reader != 0 && !order.is_before(cell.reader, clock)) return false;
    }
  }
  return true;
}

void Shadow::copy_written(std::size_t at, const Shadow& from, std::size_t from_at, std::size_t bytes) {
  if (all_written_) return;
  for (std::size_t i = 0; i < bytes; ++i) set_written(at + i, 1, from.is_written(from_at + i, 1));
}

}  // namespace lockstep::ptx
