#include "allocation_counter.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kLarge = 1024;
std::atomic<std::size_t> all{0}, large{0}, requested{0};  // global, since operator new has no context

void count(std::size_t bytes) {
  ++all;
  requested += bytes;
  if (bytes >= kLarge) ++large;
}

void* counted(std::size_t bytes) {
  count(bytes);
  return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

namespace lockstep {
Allocations allocations() {
  return {all, large, requested};
}
}  // namespace lockstep

// All forms of new that pair with the deletes below: otherwise a sanitizer's would allocate differently. Not inlined,
// or the compiler would warn about the call of free().
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* memory = counted(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return counted(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  count(bytes);
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}
