#include "cuda/interpreter/warp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace lockstep::ptx {

namespace {

constexpr std::size_t kRowAlignment = 64;
constexpr u32 kNoLimit = 0xffffffffU;

template <class Bits>
void fill(u8* row, u64 value) {
  for (u32 lane = 0; lane < kLanes; ++lane) {
    const auto bits = static_cast<Bits>(value);
    std::memcpy(row + lane * sizeof(Bits), &bits, sizeof(Bits));
  }
}

void set(u8* row, Width width, u64 value) {
  switch (width) {
    case Width::predicate:
      fill<u32>(row, value != 0 ? kAllLanes : 0);
      break;
    case Width::bits16:
      fill<u16>(row, value);
      break;
    case Width::bits32:
      fill<u32>(row, value);
      break;
    case Width::bits64:
      fill<u64>(row, value);
      break;
  }
}

}  // namespace

Warp::Warp(const Launch& launch, SharedMemory& shared)
    : launch_(launch),
      shared_(shared),
      kernel_(launch.kernel),
      apart_(false),
      storage_(std::make_unique_for_overwrite<u8[]>(kernel_.register_bytes + kRowAlignment)) {
  const auto address = reinterpret_cast<u64>(storage_.get());
  registers_ = storage_.get() + (kRowAlignment - address % kRowAlignment);
  std::memset(registers_, 0xcd, kernel_.register_bytes);  // contents of registers that were never written
  for (const Constant& constant : kernel_.constants) {
    const u64 base = constant.is_parameter ? reinterpret_cast<u64>(launch.parameters.data()) : 0;
    set(registers_ + constant.row, constant.width, base + constant.value);
  }
  toucher_ = {.order = &launch.order, .work = &launch.work, .times = &times_};
  times_.reset();
}

void Warp::start(u32 block, u32 number) {
  block_ = block;
  first_thread_ = number * kLanes;
  const u32 lanes = std::min(kLanes, launch_.threads - first_thread_);
  living_ = lanes == kLanes ? kAllLanes : (1U << lanes) - 1;
  for (const auto& [name, row] : kernel_.specials) {
    u32* const to = this->row<u32>(row);
    const bool is_thread = name == "%tid.x";
    const u32 of_all = name == "%ctaid.x" ? block : name == "%ntid.x" ? launch_.threads : launch_.blocks;
    for (u32 lane = 0; lane < kLanes; ++lane) to[lane] = is_thread ? first_thread_ + lane : of_all;
  }
  if (times_.moved) times_.reset();
  toucher_.warp = block * ((launch_.threads + kLanes - 1) / kLanes) + number + 1;
  apart_ = launch_.draw.goes_apart();
  fragments_.clear();
  if (!apart_) {
    fragments_.push_back({0, living_, false});
    return;
  }
  for (u32 lane = 0; lane < lanes; ++lane) fragments_.push_back({0, 1U << lane, false});
}

void Warp::run() {
  while (!fragments_.empty()) {
    const int chosen = next();
    if (chosen < 0) {
      if (waits_for_block()) return;
      deadlock();
    } else {
      go_on(static_cast<std::size_t>(chosen));
    }
  }
}

int Warp::next() {
  if (apart_) {
    std::vector<int> ready;
    for (std::size_t i = 0; i < fragments_.size(); ++i) {
      if (!fragments_[i].waits) ready.push_back(static_cast<int>(i));
    }
    return ready.empty() ? -1 : ready[launch_.draw.below(static_cast<u32>(ready.size()))];
  }
  int first = -1;
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    if (fragments_[i].waits) continue;
    if (first < 0 || fragments_[i].at < fragments_[static_cast<std::size_t>(first)].at) first = static_cast<int>(i);
  }
  if (first >= 0 && fragments_.size() > 1) {
    const u32 at = fragments_[static_cast<std::size_t>(first)].at;
    join_equals(static_cast<std::size_t>(first));
    const auto joined = std::ranges::find_if(fragments_, [&](const Fragment& f) { return !f.waits && f.at == at; });
    first = static_cast<int>(joined - fragments_.begin());
  }
  return first;
}

/// Merges fragments at the same instruction as this one into it.
void Warp::join_equals(std::size_t to) {
  const u32 at = fragments_[to].at;
  u32 lanes = 0;
  std::erase_if(fragments_, [&](const Fragment& one) {
    if (one.waits || one.at != at) return false;
    lanes |= one.lanes;
    return true;
  });
  fragments_.push_back({at, lanes, false});
}

/// The position of the next fragment.
u32 Warp::limit(std::size_t running) const {
  if (apart_) return kNoLimit;
  u32 limit = kNoLimit;
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    if (i != running && !fragments_[i].waits) limit = std::min(limit, fragments_[i].at);
  }
  return limit;
}

void Warp::go_on(std::size_t fragment) {
  const Fragment running = fragments_[fragment];
  const u32 limit = this->limit(fragment);
  const Instruction* const code = kernel_.code.data();
  u64* const hits = launch_.counts.hits.data();
  u64 executed = 0;
  u32 at = running.at;
  while (at < limit) {
    const Instruction& instruction = code[at];
    u32 active = running.lanes;
    if (instruction.guard != kNoRow) {
      const u32 guard = predicate(instruction.guard);
      active &= instruction.unless ? ~guard : guard;
    }
    if (active == 0) {
      ++at;
      continue;
    }
    ++hits[at];
    executed += active == kAllLanes ? kLanes : static_cast<u64>(std::popcount(active));
    if (launch_.costs != nullptr) launch_.costs->begin_instruction(instruction);
    if (instruction.flow == Flow::straight) {
      instruction.run(*this, instruction, active);
      if (launch_.costs != nullptr) launch_.costs->end_instruction();
      ++at;
      continue;
    }
    if (instruction.flow == Flow::branch && active == running.lanes) {
      at = instruction.target;
      if (at <= limit || limit == kNoLimit) continue;
      break;
    }
    if (active == running.lanes && all_meet(instruction, active)) {
      ++at;
      continue;
    }
    fragments_[fragment].at = at;
    launch_.counts.instructions += executed;
    leave_straight_line(fragment, instruction, active);
    return;
  }
  fragments_[fragment].at = at;
  launch_.counts.instructions += executed;
}

/// Some lanes branch, exit, or wait for others: the fragment is split.
void Warp::leave_straight_line(std::size_t fragment, const Instruction& instruction, u32 active) {
  Fragment& stays = fragments_[fragment];
  const u32 at = stays.at;
  stays.lanes &= ~active;
  ++stays.at;
  if (stays.lanes == 0) fragments_.erase(fragments_.begin() + static_cast<std::ptrdiff_t>(fragment));
  if (instruction.flow == Flow::leave) {
    leave(active);
  } else if (instruction.flow == Flow::branch) {
    fragments_.push_back({instruction.target, active, false});
  } else {
    fragments_.push_back({at, active, true});
    meet();
  }
}

u8* Warp::touch_unchecked(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes, Touch how) {
  const char* const verb = how == Touch::read ? "reads" : "writes";
  if (address % bytes != 0) {
    report(instruction, lane, fmt::format("{} at a misaligned address", verb),
           fmt::format("{} bytes at {:#x}", bytes, address));
    return nullptr;
  }
  Allocation* const found = launch_.memory.find(address, bytes);
  if (found == nullptr || found->space != Space::gpu) {
    const char* const where = found == nullptr ? "outside of memory" : "the host's memory";
    report(instruction, lane, fmt::format("{} {}", verb, where),
           fmt::format("{} bytes {}", bytes, launch_.memory.describe(address, bytes)));
    launch_.problems.break_gpu();
    return nullptr;
  }
  launch_.costs->access(address, bytes, how != Touch::read);
  return found->data(address);
}

std::string Warp::shared_place(u64 address, std::size_t bytes) const {
  return fmt::format("{} bytes at {} of {}", bytes, address, shared_.size());
}

u8* Warp::touch_shared_unchecked(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes,
                                 bool writes) {
  const char* const verb = writes ? "writes" : "reads";
  if (address % bytes != 0) {
    report(instruction, lane, fmt::format("{} at a misaligned address", verb), shared_place(address, bytes));
    return nullptr;
  }
  if (!shared_.holds(address, bytes)) {
    report(instruction, lane, fmt::format("{} outside of shared memory", verb), shared_place(address, bytes));
    launch_.problems.break_gpu();
    return nullptr;
  }
  launch_.costs->access_shared(address, bytes);
  return shared_.data(address);
}

const u8* Warp::parameter(const Instruction& instruction, u32 lane, u64 address, std::size_t bytes) {
  const auto first = reinterpret_cast<u64>(launch_.parameters.data());
  if (address >= first && address + bytes <= first + launch_.parameters.size()) {
    return launch_.parameters.data() + (address - first);
  }
  report(instruction, lane, "reads beside the parameters", "");
  return nullptr;
}

void Warp::report(const Instruction& instruction, u32 lane, const std::string& what, const std::string& detail) const {
  const auto at = static_cast<std::size_t>(&instruction - kernel_.code.data());
  const Statement& statement = kernel_.statements.at(at);
  const std::string thread = fmt::format("block {}, thread {}", block_, first_thread_ + lane);
  launch_.problems.add(
      fmt::format("{} ({}:{}: {}) {}", kernel_.name, kernel_.file, statement.line, statement.text, what),
      detail.empty() ? thread : thread + ": " + detail);
}

}  // namespace lockstep::ptx
