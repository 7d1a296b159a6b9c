#include "cuda/interpreter/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <new>

namespace lockstep::ptx {

namespace {

constexpr std::size_t kReserved = std::size_t{1} << 40;
constexpr u64 kAlignment = 512, kHostPage = 4096;  // cudaMalloc's alignment is 256 at least
constexpr int kJunk = 0xa5;

u64 reserve() {
  void* const at = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return reinterpret_cast<u64>(at);
}

u64 up(u64 value, u64 unit) {
  return (value + unit - 1) / unit * unit;
}

const char* name_of(Space space) {
  return space == Space::gpu ? "GPU" : "pinned";
}

}  // namespace

Memory::Memory() : gpu_{reserve(), 0}, pinned_{reserve(), 0} {
  gpu_.next = gpu_.first + kHostPage;
  pinned_.next = pinned_.first + kHostPage;
}

Memory::~Memory() {
  for (const Reserve& reserve : {gpu_, pinned_}) munmap(reinterpret_cast<void*>(reserve.first), kReserved);
}

void* Memory::allocate(std::size_t bytes, Space space) {
  if (bytes == 0) return nullptr;
  Reserve& from = space == Space::gpu ? gpu_ : pinned_;
  const u64 unit = space == Space::gpu ? kAlignment : kHostPage, size = up(bytes, unit);
  if (size > kReserved || from.next + size + unit > from.first + kReserved) return nullptr;
  const u64 address = from.next;
  from.next += size + unit;
  Allocation one{address,      bytes, space, static_cast<u32>(allocations_.size() + 1), false, {nullptr, std::free},
                 Shadow(bytes)};
  if (sparse_) one.shadow.leave_unchecked();
  if (space == Space::gpu) {
    one.storage.reset(static_cast<u8*>(sparse_ ? std::calloc(bytes, 1) : std::malloc(bytes)));
    if (one.storage == nullptr) return nullptr;
    used_ += bytes;
  } else {
    if (mprotect(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE) != 0) return nullptr;
    one.shadow.assume_written();
  }
  if (!sparse_) std::memset(one.data(address), kJunk, bytes);
  allocations_.emplace(address, std::move(one));
  return reinterpret_cast<void*>(address);
}

std::string Memory::free(void* memory, Space space) {
  const auto found = allocations_.find(reinterpret_cast<u64>(memory));
  if (found == allocations_.end()) return "free of what is no allocation";
  Allocation& one = found->second;
  if (one.freed)
    return fmt::format("second free of {} allocation {} of {} bytes", name_of(space), one.number, one.bytes);
  if (one.space != space)
    return fmt::format("free of {} allocation {} as {} memory", name_of(one.space), one.number, name_of(space));
  one.freed = true;
  one.shadow = Shadow(0);
  recent_.fill(nullptr);
  if (space == Space::gpu) {
    one.storage.reset();
    used_ -= one.bytes;
  } else {
    void* const at = reinterpret_cast<void*>(one.address);
    const u64 size = up(one.bytes, kHostPage);
    if (madvise(at, size, MADV_DONTNEED) != 0 || mprotect(at, size, PROT_NONE) != 0)
      return "pinned memory stays mapped";
  }
  return "";
}

const Allocation* Memory::nearest(u64 address) const {
  const auto behind = allocations_.upper_bound(address);
  return behind == allocations_.begin() ? nullptr : &std::prev(behind)->second;
}

Allocation* Memory::look_up(u64 address, std::size_t bytes) {
  const auto behind = allocations_.upper_bound(address);
  if (behind == allocations_.begin()) return nullptr;
  Allocation& found = std::prev(behind)->second;
  if (found.freed || !found.holds(address, bytes)) return nullptr;
  return recent_[looked_up_++ % recent_.size()] = &found;
}

std::string Memory::describe(u64 address, std::size_t bytes) const {
  const Allocation* const found = nearest(address);
  const bool is_ours = address >= gpu_.first && address < gpu_.next;
  const bool is_pinned = address >= pinned_.first && address < pinned_.next;
  if (found == nullptr || (!is_ours && !is_pinned)) return "in no allocation";
  const std::string what =
      fmt::format("{} allocation {} of {} bytes", name_of(found->space), found->number, found->bytes);
  if (found->freed && address < found->address + found->bytes) return "in freed " + what;
  if (address >= found->address + found->bytes) {
    return fmt::format("{} bytes behind {}", address - found->address - found->bytes, what);
  }
  return fmt::format("{} bytes from the start of {}, {} of them", address - found->address, what, bytes);
}

std::string Memory::leaks() const {
  std::size_t count = 0, bytes = 0;
  const Allocation* first = nullptr;
  for (const auto& [address, one] : allocations_) {
    if (one.freed) continue;
    if (first == nullptr || one.number < first->number) first = &one;
    ++count;
    bytes += one.bytes;
  }
  if (count == 0) return "";
  return fmt::format("{} allocations of {} bytes are left at the end, the first is {} allocation {} of {} bytes", count,
                     bytes, name_of(first->space), first->number, first->bytes);
}

}  // namespace lockstep::ptx
