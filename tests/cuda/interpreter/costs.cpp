#include "cuda/interpreter/costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

namespace lockstep::ptx {

namespace {

u32 mask_of(u64 first, u64 end) {
  return static_cast<u32>(((u64{1} << (end - first)) - 1) << first);
}

}  // namespace

std::unique_ptr<Costs> Costs::asked_for() {
  const char* const blocks = std::getenv("INTERPRETED_GPU_BLOCKS");
  if (blocks == nullptr) return nullptr;
  const char* const names = std::getenv("INTERPRETED_GPU_WHOLE");
  std::vector<std::string> whole;
  for (std::string rest = names == nullptr ? "" : names; !rest.empty();) {
    const auto end = std::min(rest.find(','), rest.size());
    if (end > 0) whole.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  return std::make_unique<Costs>(std::max(1U, static_cast<u32>(std::strtoul(blocks, nullptr, 10))), std::move(whole));
}

bool Costs::repeats(const Kernel& kernel, u32 blocks, u32 threads, std::vector<u8> parameters, Memory& memory) {
  for (std::size_t at = 0; at + sizeof(u64) <= parameters.size(); at += sizeof(u64)) {
    u64 word = 0;
    std::memcpy(&word, &parameters[at], sizeof word);
    if (memory.find(word, 1) == nullptr) continue;
    word %= kAligned;
    std::memcpy(&parameters[at], &word, sizeof word);
  }
  launch_ = fmt::format("{} {} {} {}", kernel.name, blocks, threads, fmt::join(parameters, " "));
  const auto found = counted_.find(launch_);
  if (found == counted_.end()) return false;
  lines_.push_back(found->second);
  return true;
}

std::vector<u32> Costs::begin(const Kernel& kernel, u32 blocks, u32 threads, std::size_t shared_bytes) {
  const auto is_named = [&](const std::string& part) { return kernel.name.find(part) != std::string::npos; };
  std::vector<u32> chosen(blocks);
  std::iota(chosen.begin(), chosen.end(), 0U);
  if (blocks > blocks_ && std::ranges::none_of(whole_, is_named)) {
    // Pairs at equal distances; the last one is the grid's end.
    chosen.resize(blocks_);
    const u32 pairs = (blocks_ + 1) / 2;
    for (u32 i = 0; i < blocks_; ++i) {
      const u64 start = pairs == 1 ? 0 : u64{i / 2} * (blocks - 2) / (pairs - 1);
      chosen[i] = static_cast<u32>(start) + i % 2;
    }
  }
  now_ = {.kernel = kernel.name,
          .blocks = blocks,
          .threads = threads,
          .ran = static_cast<u32>(chosen.size()),
          .shared_bytes = shared_bytes};
  sectors_.clear();
  registers_ = kernel.register_bytes;
  warps_.clear();
  distance_ = 0;
  return chosen;
}

void Costs::begin_block(u32 block, u32 warps) {
  end_block();
  block_ = block;
  warps_.resize(warps);
  for (WarpState& warp : warps_) {
    warp.depths.resize(registers_);
    warp.number = ++warps_begun_;
  }
}

void Costs::go_on(u32 warp) {
  warp_ = &warps_[warp];
}

void Costs::end_block() {
  for (WarpState& warp : warps_) {
    warp_ = &warp;
    end_segment();
    now_.chain = std::max(now_.chain, warp.chain);
    now_.waits = std::max(now_.waits, warp.waits);
  }
  warps_.clear();
}

void Costs::end_segment() {
  warp_->waits += warp_->deepest;
  warp_->deepest = 0;
  for (const Row row : warp_->deep) warp_->depths[row] = 0;
  warp_->deep.clear();
}

void Costs::arrives(Row row, u32 depth) {
  if (row == kNoRow) return;
  if (depth > 0 && warp_->depths[row] == 0) warp_->deep.push_back(row);
  warp_->depths[row] = depth;
}

void Costs::begin_instruction(const Instruction& instruction) {
  now_.instructions += 1;
  ++warp_->chain;
  of_ = &instruction;
  accesses_.clear();
  warp_->depth = 0;
  const auto read = [&](Row row) { warp_->depth = std::max(warp_->depth, row == kNoRow ? 0 : warp_->depths[row]); };
  read(instruction.guard);
  for (const Row row : instruction.from) read(row);
  if (instruction.flow == Flow::straight) {
    arrives(instruction.to, warp_->depth);
  } else {
    end_segment();
  }
}

void Costs::access(u64 address, std::size_t bytes, bool writes) {
  accesses_.push_back({address, bytes});
  writes_ = writes;
}

void Costs::touch(u64 sector, u32 mask) {
  const auto [found, is_new] = sectors_.try_emplace(sector);
  Sector& one = found->second;
  if (is_new) one.block = block_;
  if (one.block != block_) one.shared = true;
  const bool is_first = one.written == 0 && (writes_ || one.read == 0);
  (writes_ ? one.written : one.read) |= mask;
  const auto recent = std::ranges::find(warp_->recent, sector);
  if (recent == warp_->recent.end()) {
    ++one.moves;
    ++warp_->moved;
    if (!is_first) {
      ++one.again;
      if (one.warp == warp_->number) distance_ = std::max(distance_, warp_->moved - one.at);
    }
    if (warp_->recent.size() == kCachedSectors) warp_->recent.erase(warp_->recent.begin());
  } else {
    if (writes_ && one.written == mask && one.read != 0) {  // read before, and now written, too
      ++one.moves;
      ++warp_->moved;
    }
    warp_->recent.erase(recent);
  }
  one.warp = warp_->number;
  one.at = warp_->moved;
  warp_->recent.push_back(sector);
}

void Costs::access_shared(u64 address, std::size_t bytes) {
  shared_.push_back({address, bytes});
}

/// Lanes are served in order, as many at once as take 128 bytes.
void Costs::end_shared() {
  constexpr std::size_t kBanks = 32, kWord = 4;
  const std::size_t at_once = kBanks * kWord / shared_.front().bytes;
  for (std::size_t first = 0; first < shared_.size(); first += at_once) {
    std::array<std::set<u64>, kBanks> words;
    for (std::size_t i = first; i < std::min(first + at_once, shared_.size()); ++i) {
      for (u64 word = shared_[i].address / kWord; word < (shared_[i].address + shared_[i].bytes) / kWord; ++word)
        words[word % kBanks].insert(word);
    }
    const auto fuller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
    now_.banked += 1;
    now_.ways += static_cast<f64>(std::ranges::max_element(words, fuller)->size());
  }
  shared_.clear();
}

void Costs::end_instruction() {
  if (!shared_.empty()) end_shared();
  if (accesses_.empty()) return;
  std::map<u64, u32> masks;
  for (const Access& one : accesses_) {
    for (u64 at = one.address; at < one.address + one.bytes;) {
      const u64 sector = at / kSectorBytes, end = std::min((sector + 1) * kSectorBytes, one.address + one.bytes);
      masks[sector] |= mask_of(at % kSectorBytes, end - sector * kSectorBytes);
      at = end;
    }
  }
  u64 bytes = 0;
  for (const auto& [sector, mask] : masks) {
    bytes += static_cast<u64>(std::popcount(mask));
    touch(sector, mask);
  }
  now_.requests += 1;
  now_.sectors += static_cast<f64>(masks.size());
  const u64 whole_sectors = (bytes + kSectorBytes - 1) / kSectorBytes;
  now_.needed += static_cast<f64>(whole_sectors);
  if (writes_) {
    end_segment();
  } else {
    const u32 depth = warp_->depth + 1;
    warp_->deepest = std::max(warp_->deepest, depth);
    arrives(of_->to, depth);
    for (const Row row : of_->vector) arrives(row, depth);
  }
  accesses_.clear();
}

void Costs::end() {
  end_block();
  const f64 scale = static_cast<f64>(now_.blocks) / now_.ran;
  for (f64* const amount : {&now_.instructions, &now_.requests, &now_.sectors, &now_.needed, &now_.banked, &now_.ways})
    *amount *= scale;
  for (const auto& [number, one] : sectors_) {
    const int bytes = std::popcount(one.read) + std::popcount(one.written);
    const int ways = (one.read != 0 ? 1 : 0) + (one.written != 0 ? 1 : 0);
    // What several blocks have is moved once: the L2 cache has it for the others.
    now_.least += one.shared ? bytes : bytes * scale;
    now_.moved += static_cast<f64>(kSectorBytes) * (one.shared ? ways : one.moves * scale);
    now_.again += one.shared ? 0 : kSectorBytes * one.again * scale;
  }
  now_.distance = kSectorBytes * distance_;
  lines_.push_back(fmt::format(
      "launch\t{}\t{}\t{}\t{}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{}\t{}\t{:.0f}\t{}\t{:.0f}\t{:.0f}\t{}",
      now_.blocks, now_.threads, now_.ran, now_.shared_bytes, now_.instructions, now_.requests, now_.sectors,
      now_.needed, now_.moved, now_.least, now_.chain, now_.waits, now_.again, now_.distance, now_.banked, now_.ways,
      now_.kernel));
  counted_[launch_] = lines_.back();
}

void Costs::add(const LibraryCost& cost) {
  lines_.push_back(fmt::format("library\t{:.0f}\t{:.0f}\t{}", cost.work, cost.bytes, cost.name));
}

}  // namespace lockstep::ptx
