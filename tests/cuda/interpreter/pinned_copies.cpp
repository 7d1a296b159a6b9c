#include "cuda/interpreter/pinned_copies.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace lockstep::ptx {

namespace {

constexpr int kPoison = 0xa7;  // of floats: small numbers, each bit of which is wrong

const u8* host_bytes(Memory& memory, u64 address, std::size_t bytes) {
  Allocation* const found = memory.find(address, bytes);
  return found == nullptr || found->space != Space::pinned ? nullptr : found->data(address);
}

u64 digest_of(const u8* bytes, std::size_t count) {
  return std::hash<std::string_view>()(std::string_view(reinterpret_cast<const char*>(bytes), count));
}

}  // namespace

bool PinnedCopies::overlaps(u64 address, std::size_t bytes, bool writes) const {
  return std::ranges::any_of(pending_, [&](const Pending& one) {
    return one.writes == writes && one.first < address + bytes && address < one.first + one.bytes;
  });
}

PinnedCopies::Token PinnedCopies::put(Memory& memory, u64 address, std::size_t bytes, bool writes) {
  Pending copy{address, bytes, writes};
  if (const u8* const at = host_bytes(memory, address, bytes); at != nullptr && !writes) {
    copy.compared = !overlaps(address, bytes, true);
    copy.digest = digest_of(at, bytes);
  } else if (at != nullptr && !overlaps(address, bytes, false)) {
    std::memset(memory.find(address, bytes)->data(address), kPoison, bytes);
  }
  return pending_.insert(pending_.end(), copy);
}

void PinnedCopies::done(Memory& memory, Problems& problems, Token copy) {
  const u8* const at = host_bytes(memory, copy->first, copy->bytes);
  if (at != nullptr && copy->compared && digest_of(at, copy->bytes) != copy->digest) {
    problems.add("misses a wait: the host writes what a copy to the GPU has yet to read",
                 memory.describe(copy->first, copy->bytes));
  }
  pending_.erase(copy);
}

}  // namespace lockstep::ptx
